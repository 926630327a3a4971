"""Looking up what a stat cache claims: the ids of a checkpoint that is gone may lead nowhere."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from casnap.codec.chunk_lists import iterate_chunk_list
from casnap.errors import Damage
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.objects import ObjectSink, ObjectSource
from casnap.model.tree import File, is_redacted
from casnap.workspace.found import FoundDirectory, ReadJob

ASKED_AT_ONCE = 1024
"""Most ids that one question to the sink holds."""

_Claim = tuple[FoundDirectory, File]
_T = TypeVar("_T")


def unconfirmed(found: Mapping[bytes, FoundDirectory], sink: ObjectSink, source: ObjectSource | None) -> list[ReadJob]:
    """Jobs for the believed files of which something is missing; these have no entries any more.

    A chunk list that is there says nothing about its chunks: it is read from ``source``, and without one
    each file that has a list is read again.
    """
    missing: list[_Claim] = []
    entries = ((directory, entry) for directory in found.values() for entry in directory.entries.values())
    claims = [(directory, entry) for directory, entry in entries if type(entry) is File]
    for batch in _batches(claim for claim in claims if not claim[1].chunk_list):
        present = sink.standing({ObjectKey(ObjectKind.CHUNK, file.content) for _, file in batch})
        missing += [claim for claim in batch if ObjectKey(ObjectKind.CHUNK, claim[1].content) not in present]
    missing += [claim for claim in claims if claim[1].chunk_list and not _has_chunks(claim[1], sink, source)]
    for directory, file in missing:
        del directory.entries[file.name]
    return [ReadJob(directory, file.name, settled=True, redacted=is_redacted(file)) for directory, file in missing]


def _has_chunks(file: File, sink: ObjectSink, source: ObjectSource | None) -> bool:
    if source is None:
        return False
    try:
        for batch in _batches(iterate_chunk_list(source, file.chunk_list, file.size)):
            keys = {ObjectKey(ObjectKind.CHUNK, chunk) for _, chunk in batch}
            if sink.standing(keys) != keys:
                return False
    except Damage:
        return False
    return True


def _batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, ASKED_AT_ONCE)):
        yield batch
