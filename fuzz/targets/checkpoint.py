"""A checkpoint object."""

from __future__ import annotations

from casnap.codec.checkpoints import decode_checkpoint, encode_checkpoint
from casnap.errors import Damage
from casnap.model.checkpoint import CheckpointObject, GitState, Origin
from fuzz.law import Target, encodes_to_itself
from fuzz.targets.samples import ID, ROOT, WORKSPACE

_RICH = CheckpointObject(
    workspace=WORKSPACE,
    root=ROOT,
    parent=ID,
    message="before the refactoring — 保存",
    metadata='{"ticket":7}',
    scan_started=1_700_000_000_000_000_000,
    scan_ended=1_700_000_000_100_000_000,
    origin=Origin(user="alice", host="box", agent="claude-code"),
    git=GitState("main", "0" * 40),
    rules=("exclude *.log", "exclude build/"),
    links=((b"a", b"b/c"), (b"d", b"e", b"f")),
)
_PLAIN = CheckpointObject(WORKSPACE, ROOT, b"", "", "{}", 1, 2, Origin(), None, (), ())

TARGET = Target(
    name="checkpoint",
    parse=decode_checkpoint,
    errors=(Damage,),
    fault=encodes_to_itself(lambda checkpoint: encode_checkpoint(checkpoint)[1]),
    seeds=tuple(encode_checkpoint(checkpoint)[1] for checkpoint in (_RICH, _PLAIN)),
    tokens=(b"\xc0", b"\x90", b"\xc4\0", b"\xa2{}", b'\xa7{"a":1}', b'\xa9{"a":1e9}', b'\xa9{"a":NaN}', b"\xc4\1."),
)
