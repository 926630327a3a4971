"""A line of the operation log."""

from __future__ import annotations

import hashlib

from casnap.codec.lines import NO_PREVIOUS, decode_line, encode_line
from casnap.errors import Damage, TooNew
from casnap.model.operation import (
    AnyOperation,
    CheckpointMade,
    CheckpointsDeleted,
    CheckpointsFoundGood,
    CheckpointUndeleted,
    PackCut,
    PackRange,
    PathsExpunged,
    RollbackBegun,
    RollbackEnded,
    SpaceFreed,
    StoreChecked,
    StoreCreated,
    StoreRepaired,
    Verified,
    WorkspaceForgotten,
    WorkspaceRegistered,
)
from fuzz.law import Target, encodes_to_itself
from fuzz.targets.samples import HEX, OTHER_ID, WORKSPACE


def _encode(decoded: tuple[AnyOperation, str]) -> bytes:
    return encode_line(decoded[0])[0]


def _seal(data: bytes) -> bytes:
    """Put its hash right."""
    body = data.rpartition(b',"hash":"')[0] or data
    return body + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'


def _operations() -> tuple[AnyOperation, ...]:
    written = PackRange(WORKSPACE, 64, 4096, 2048)
    return (
        StoreCreated(seq=1, time=1, prev=NO_PREVIOUS, format={"format": 1}),
        WorkspaceRegistered(seq=2, time=2, prev=HEX, workspace=WORKSPACE, path="/srv/caf\\xe9"),
        CheckpointMade(
            seq=3, time=3, prev=HEX, workspace=WORKSPACE, id=HEX, step=1, name="first", packs=(written,), new_bytes=9
        ),
        RollbackBegun(
            seq=4,
            time=4,
            prev=HEX,
            workspace=WORKSPACE,
            verb="rollback",
            safety=HEX,
            target=HEX,
            nonce="0123456789abcdef",
            undo_safety=HEX,
            undo_head=HEX,
            paths=("a/b",),
        ),
        RollbackEnded(seq=5, time=5, prev=HEX, workspace=WORKSPACE, begin=4, result="done", counts=(1, 2, 3)),
        CheckpointsDeleted(seq=6, time=6, prev=HEX, workspace=WORKSPACE, ids=(HEX, HEX), by=("alice",)),
        CheckpointUndeleted(seq=7, time=7, prev=HEX, workspace=WORKSPACE, id=HEX, name="back", version="1.0"),
        Verified(seq=8, time=-8, prev=HEX, workspace=WORKSPACE, id=HEX, result="equal"),
        WorkspaceForgotten(seq=9, time=9, prev=HEX, workspace=WORKSPACE, drop=True),
        SpaceFreed(seq=10, time=10, prev=HEX, freed=(HEX,), cuts=(PackCut(WORKSPACE, 4096),), packs=(written,)),
        StoreChecked(seq=11, time=11, prev=HEX, result="damaged", read_data=True, found=2),
        StoreRepaired(seq=12, time=12, prev=HEX, healed=2, lost=1, before=HEX, packs=(written,)),
        PathsExpunged(
            seq=13, time=13, prev=HEX, workspace=WORKSPACE, pattern="*.key", replaced=((HEX, OTHER_ID.hex()),)
        ),
        CheckpointsFoundGood(seq=14, time=14, prev=HEX, workspace=WORKSPACE, ids=(HEX,), good=False),
    )


TARGET = Target(
    name="line",
    parse=decode_line,
    errors=(Damage, TooNew),
    fault=encodes_to_itself(_encode),
    seeds=tuple(encode_line(operation)[0] for operation in _operations()),
    seal=_seal,
    tokens=(b'"op":"', b'"format":', b"[]", b"{}", b"null", b"1e999", b"\\ud800", b"\\u0000", b'\\\\x2e"', b"0.5"),
)
