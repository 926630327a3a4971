"""``make fuzz``: feed mutated inputs to every target and hold it to its law.

An input that breaks the law is kept in fuzz/corpus/TARGET/ as a regression: each run begins with all of these.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
from pathlib import Path

from casnap.errors import CasnapError
from fuzz.mutation import mutate
from fuzz.targets import TARGETS, Target

CORPUS = Path(__file__).with_name("corpus")
BATCH = 100


def main() -> None:
    """Share the time out among the targets; exit with 1 when a law was broken."""
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("--seconds", type=float, default=30, help="how long, all targets together")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32), help="to repeat a run")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    broken = 0
    for target in TARGETS:
        inputs, fault = fuzz(target, arguments.seconds / len(TARGETS), random.Random(arguments.seed))
        print(f"{target.name:<12} {inputs:>9,} inputs  {'ok' if fault is None else fault}", flush=True)
        broken += fault is not None
    sys.exit(min(broken, 1))


def fuzz(target: Target, seconds: float, rng: random.Random) -> tuple[int, str | None]:
    """How many inputs were tried within the time, and what was wrong with the last of them."""
    known = [*target.seeds, *corpus(target)]
    for data in known:
        if fault := judge(target, data):
            return 1, fault
    inputs, end = len(known), time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(BATCH):
            data = mutate(rng, rng.choice(known), known)
            if rng.random() < 0.8:
                data = target.seal(data)
            inputs += 1
            if fault := judge(target, data):
                return inputs, f"{fault}; kept as {keep(target, data)}"
    return inputs, None


def judge(target: Target, data: bytes) -> str | None:
    """How ``data`` breaks the target's law; None when it does not."""
    try:
        again = target.parse(data)
    except CasnapError:
        return None
    except Exception as error:
        return f"BROKEN: {type(error).__name__}: {error}"
    return None if again == data else "BROKEN: it was accepted, but is encoded differently"


def corpus(target: Target) -> list[bytes]:
    """Inputs that once broke the law, or are likely to."""
    return [path.read_bytes() for path in sorted((CORPUS / target.name).glob("*")) if path.is_file()]


def keep(target: Target, data: bytes) -> Path:
    """Put an input into the corpus."""
    path = CORPUS / target.name / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


if __name__ == "__main__":
    main()
