"""The law that every parser is held to, whoever makes up the inputs.

A parser returns, or raises an error that it documents; what it accepts keeps the law of its target, for most that it
is encoded to the same bytes again; and it takes no more memory than the format allows.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from casnap.errors import CasnapError

T = TypeVar("T")

PER_BYTE = 96
"""Most bytes of memory for a byte of input: ``{}`` in JSON, and each level of nesting, come near it."""

AT_LEAST = 256 << 10
"""Memory that an input of any length may cost: messages, hashers, what Python keeps for later."""


@dataclass(frozen=True)
class Target(Generic[T]):
    """A parser, the errors that it documents, and what must be true of a value that it returns.

    ``fault`` gets such a value and the input, and answers what is wrong, or None. ``seal`` repairs checksums and
    hashes, so that mutations reach what lies behind them. ``tokens`` are pieces that this parser knows.
    ``unpacked`` is how many bytes the format lets the parser take beyond what the input's length accounts for.
    ``longest`` is where made-up inputs are cut: so that a run does not slow down as pieces are repeated.
    """

    name: str
    parse: Callable[[bytes], T]
    errors: tuple[type[CasnapError], ...]
    fault: Callable[[T, bytes], str | None]
    seeds: tuple[bytes, ...]
    seal: Callable[[bytes], bytes] = lambda data: data
    tokens: tuple[bytes, ...] = ()
    unpacked: int = 0
    longest: int = 1 << 16

    def allowance(self, size: int) -> int:
        """Most bytes of memory that an input of ``size`` bytes may cost."""
        return AT_LEAST + PER_BYTE * size + self.unpacked


def encodes_to_itself(encode: Callable[[T], bytes]) -> Callable[[T, bytes], str | None]:
    """The usual law of accepted inputs: ``encode`` gives the same bytes again."""

    def fault(value: T, data: bytes) -> str | None:
        return None if encode(value) == data else "it was accepted, but is encoded differently"

    return fault


def judge(target: Target[T], data: bytes) -> str | None:
    """How ``data`` breaks the law; None when it does not.

    Costs least where ``tracemalloc`` traces already. Each time that it is stopped it leaks some 200 bytes.
    """
    if tracemalloc.is_tracing():
        return _judge(target, data)
    tracemalloc.start()
    try:
        return _judge(target, data)
    finally:
        tracemalloc.stop()


def _judge(target: Target[T], data: bytes) -> str | None:
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    try:
        value = target.parse(data)
    except target.errors:
        return _memory_fault(target, len(data), before)
    except Exception as error:
        return f"it raised {type(error).__name__}: {error}"
    fault = _memory_fault(target, len(data), before)
    try:
        return target.fault(value, data) or fault
    except Exception as error:
        return f"it was accepted, but then came {type(error).__name__}: {error}"


def _memory_fault(target: Target[T], size: int, before: int) -> str | None:
    peak, allowed = tracemalloc.get_traced_memory()[1] - before, target.allowance(size)
    return None if peak <= allowed else f"it took {peak:,} bytes of memory, {allowed:,} are allowed"
