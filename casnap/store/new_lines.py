"""Operations chained anew: their numbers, hashes and references to each other, whatever these were before."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from casnap.codec.lines import NO_PREVIOUS, encode_line
from casnap.model.operation import AnyOperation, RollbackEnded
from casnap.store.apply import apply
from casnap.store.rows import Mark
from casnap.store.tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """An operation that is to have a line. ``old`` is the number that its line had, 0 for one that is new.

    ``begun`` is the rollback that a new RollbackEnded ends; of a kept one its own field says that.
    """

    operation: AnyOperation
    old: int = 0
    begun: Planned | None = None


def chain(planned: Iterable[Planned]) -> tuple[list[AnyOperation], list[bytes]]:
    """The operations with numbers from 1 on, and their lines.

    A rollback whose begin line is lost ends at the newest line before that, which closes what began until then.
    """
    operations: list[AnyOperation] = []
    lines: list[bytes] = []
    olds, news = [0], [1]
    numbers: dict[int, int] = {}
    previous = NO_PREVIOUS
    for seq, one in enumerate(planned, 1):
        operation: AnyOperation = replace(one.operation, seq=seq, prev=previous)
        if isinstance(operation, RollbackEnded):
            begin = numbers[id(one.begun)] if one.begun else news[bisect_right(olds, operation.begin) - 1]
            operation = replace(operation, begin=min(begin, seq - 1))
        numbers[id(one)] = seq
        if one.old > olds[-1]:
            olds.append(one.old)
            news.append(seq)
        line, previous = encode_line(operation)
        operations.append(operation)
        lines.append(line)
    return operations, lines


def fold(planned: Iterable[Planned]) -> Tables:
    """What planned operations amount to."""
    tables = Tables(None, lambda written: ())
    for operation in chain(planned)[0]:
        apply(tables, operation, Mark(operation.seq, NO_PREVIOUS, 1, 0))
    return tables
