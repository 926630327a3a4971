"""Checkpoint objects (docs/format/checkpoint.md)."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence

from casnap.codec import canonical
from casnap.codec.compression import MAX_RAW
from casnap.codec.entries import fields_fault
from casnap.codec.hashing import object_id
from casnap.codec.metadata import decode_metadata
from casnap.codec.paths import is_path
from casnap.errors import Damage, Refused
from casnap.model.checkpoint import CheckpointObject
from casnap.model.ids import ID_SIZE, ObjectKey, ObjectKind

_INT64 = 1 << 63


def encode_checkpoint(checkpoint: CheckpointObject) -> tuple[ObjectKey, bytes]:
    """The name and the bytes of a checkpoint object.

    Raises:
        Refused: message, metadata, rules and hard-link groups together are longer than an object may be.
        ValueError: a field breaks a rule that readers check.
    """
    if fault := _fault(checkpoint):
        raise ValueError(f"cannot write checkpoint: {fault}")
    data = canonical.encode(checkpoint)
    if len(data) > MAX_RAW:
        raise Refused(
            f"cannot record checkpoint: it would take {len(data)} bytes, {MAX_RAW} are allowed "
            f"({sum(map(len, checkpoint.links))} hard links)",
            hint="shorten the message or the metadata, or exclude a directory of hard links",
        )
    return ObjectKey(ObjectKind.CHECKPOINT, object_id(ObjectKind.CHECKPOINT, data)), data


def decode_checkpoint(data: bytes) -> CheckpointObject:
    """The checkpoint that ``data`` is.

    Raises:
        Damage: the bytes are not the canonical encoding of a checkpoint that keeps all rules.
    """
    checkpoint: CheckpointObject = canonical.decode(data, CheckpointObject)
    if fault := _fault(checkpoint):
        raise Damage(f"cannot read checkpoint: {fault}")
    return checkpoint


def _fault(checkpoint: CheckpointObject) -> str | None:
    """What is wrong with a checkpoint, as readers and writers both see it."""
    if not checkpoint.workspace:
        return "it names no workspace"
    if checkpoint.root.name:
        return "its root has a name"
    if len(checkpoint.parent) not in (0, ID_SIZE):
        return "the id of its parent has the wrong length"
    if not all(-_INT64 <= time < _INT64 for time in (checkpoint.scan_started, checkpoint.scan_ended)):
        return "a time is out of range"
    return fields_fault([checkpoint.root]) or _metadata_fault(checkpoint.metadata) or _links_fault(checkpoint.links)


def _metadata_fault(text: str) -> str | None:
    try:
        decode_metadata(text)
    except Damage:
        return "its metadata is not a JSON object in canonical form"
    return None


def _links_fault(groups: Sequence[Sequence[bytes]]) -> str | None:
    if not all(len(group) > 1 and _is_sorted(group) for group in groups):
        return "a group of hard links is not sorted, or has less than two paths"
    if not _is_sorted([group[0] for group in groups]):
        return "its groups of hard links are not sorted"
    paths = list(itertools.chain.from_iterable(groups))
    if len(set(paths)) != len(paths) or not all(path and is_path(path) for path in paths):
        return "a hard link is in two groups, or has a path that cannot be"
    return None


def _is_sorted(paths: Sequence[bytes]) -> bool:
    return all(map(operator.lt, paths, itertools.islice(paths, 1, None)))
