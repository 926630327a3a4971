"""The process in which Atheris fuzzes one target: ``python -m fuzz.instrumented TARGET LIBFUZZER-OPTION…``."""

from __future__ import annotations

import sys
import tracemalloc

import atheris  # type: ignore[import-untyped]

from fuzz import memory

with atheris.instrument_imports(include=["casnap"]):
    from fuzz.targets import TARGETS

from fuzz.law import judge

SEALED = 5
"""Of so many mutated inputs, all but one get their checksums put right."""


def main() -> None:
    """Fuzz until libFuzzer ends the process: with an error when an input breaks the law."""
    target = next(target for target in TARGETS if target.name == sys.argv[1])

    def try_one(data: bytes) -> None:
        if fault := judge(target, data):
            raise AssertionError(fault)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        mutated: bytes = atheris.Mutate(data, most)
        sealed = target.seal(mutated) if seed % SEALED else mutated
        return sealed if len(sealed) <= most else mutated

    atheris.Setup([sys.argv[0], *sys.argv[2:]], try_one, custom_mutator=mutate)
    memory.bound()
    tracemalloc.start()
    atheris.Fuzz()


if __name__ == "__main__":
    main()
