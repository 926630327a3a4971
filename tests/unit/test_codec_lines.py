"""Lines of the operation log: their text, their hash, and every rule of their fields."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from casnap.codec.lines import MAX_LINE, NO_PREVIOUS, decode_line, encode_line
from casnap.codec.operations import find_fault
from casnap.errors import Damage, Refused, TooNew
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

A, B = "a" * 64, "b" * 64
CHAIN: dict[str, Any] = {"seq": 7, "time": 1, "prev": B}
HERE = CHAIN | {"workspace": "w"}
RANGE = PackRange("0" * 32, 64, 168, 120)

GOOD: list[AnyOperation] = [
    StoreCreated(seq=1, time=1, prev=NO_PREVIOUS, format={"format": 1}),
    WorkspaceRegistered(**HERE, path="/home/me"),
    WorkspaceForgotten(**HERE),
    CheckpointMade(**HERE, id=A, step=1, packs=(RANGE,)),
    RollbackBegun(**HERE, verb="rollback", safety=A, target=A, nonce="1f", undo_safety=A, paths=("", "a/b")),
    RollbackEnded(**HERE, begin=6, result="done"),
    CheckpointsDeleted(**HERE, ids=(A, B)),
    CheckpointUndeleted(**HERE, id=A),
    Verified(**HERE, id=A, result="equal"),
    SpaceFreed(**CHAIN, freed=(A, B), cuts=(PackCut("0" * 32, 64), PackCut("1" * 32, 0)), packs=(RANGE,)),
    StoreChecked(**CHAIN, result="clean"),
    StoreRepaired(**CHAIN, healed=3, lost=1, before=A, packs=(RANGE,)),
    PathsExpunged(**HERE, pattern="*.key", replaced=((A, B), ("c" * 64, "d" * 64)), packs=(RANGE,)),
    CheckpointsFoundGood(**HERE, ids=(A, B), good=False),
]
CREATED, REGISTERED, FORGOTTEN, MADE, BEGUN, ENDED, DELETED, UNDELETED, VERIFIED = GOOD[:9]
FREED, CHECKED, REPAIRED, EXPUNGED, FOUND_GOOD = GOOD[9:]


def sealed(body: str) -> bytes:
    """A line with a right hash around any body that lacks its closing brace."""
    return f'{body},"hash":"{hashlib.sha256(body.encode()).hexdigest()}"}}\n'.encode()


def test_the_text_of_a_line_never_changes() -> None:
    line, line_hash = encode_line(REGISTERED)
    body = f'{{"op":"register","seq":7,"time":1,"prev":"{B}","workspace":"w","path":"/home/me"'
    assert line == sealed(body)
    assert line_hash == hashlib.sha256(body.encode()).hexdigest()


@pytest.mark.parametrize("operation", GOOD, ids=lambda operation: type(operation).__name__)
def test_a_line_of_every_operation_comes_back(operation: AnyOperation) -> None:
    assert find_fault(operation) is None
    assert decode_line(encode_line(operation)[0])[0] == operation


def test_a_line_of_a_usual_commit_is_short() -> None:
    line, _ = encode_line(
        replace(
            MADE,
            seq=12_345,
            time=1_796_000_000_123_456_789,
            workspace="0123456789ab",
            step=1_234,
            parent=B,
            counts=(3, 5, 1),
            new_bytes=123_456,
            name="before-refactor",
        )
    )
    assert len(line) < 520


def test_an_unknown_operation_under_a_right_hash_is_too_new() -> None:
    with pytest.raises(TooNew, match="newer format's operation"):
        decode_line(sealed(f'{{"op":"teleport","seq":7,"time":1,"prev":"{B}","to":[1,{{}}]'))


@pytest.mark.parametrize("operation", [ENDED, VERIFIED, CHECKED], ids=["rollback-end", "verify", "check"])
def test_an_unknown_result_under_a_right_hash_is_too_new(operation: AnyOperation) -> None:
    line = encode_line(operation)[0].decode()
    body = line[: line.rindex(',"hash"')]
    for known in ("done", "equal", "clean"):
        body = body.replace(f'"{known}"', '"sideways"')
    with pytest.raises(TooNew, match="newer format's result"):
        decode_line(sealed(body))
    with pytest.raises(ValueError, match="result"):
        encode_line(replace(operation, result="sideways"))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[1",
        '{"seq":7',
        '{"op":7',
        f'{{"op":"register","seq":7,"time":1,"prev":"{B}","workspace":"w"',
        f'{{"op":"register","seq":7,"time":1,"prev":"{B}","workspace":"w","path":"/","more":1',
        f'{{"op":"register","seq":7.0,"time":1,"prev":"{B}","workspace":"w","path":"/"',
        f'{{"op":"forget","seq":7,"time":1,"prev":"{B}","workspace":"w","drop":false',
        f'{{"op":"forget","seq":7,"time":1,"prev":"{B}","workspace":"w" ',
        '{"op":"store-created","seq":1,"time":1,"prev":"' + NO_PREVIOUS + '","format":{"a":' + "[" * 100_000,
        '{"op":"store-created","seq":1,"time":1,"prev":"' + NO_PREVIOUS + '","format":{"a":1e999}',
        '{"op":"store-created","seq":1,"time":1,"prev":"' + NO_PREVIOUS + '","format":{"a":1,"a":1}',
    ],
)
def test_a_body_that_is_not_the_one_text_of_an_operation_is_damage(body: str) -> None:
    with pytest.raises(Damage):
        decode_line(sealed(body))


def test_a_line_that_is_not_whole_is_damage() -> None:
    line, line_hash = encode_line(REGISTERED)
    wrong_hash = line.replace(line_hash.encode(), b"0" * 64)
    upper_hash = line.replace(line_hash.encode(), line_hash.upper().encode())
    for bad in (b"", b"\n", line[:-1], line[1:], line + b"\n", line + line, wrong_hash, upper_hash):
        with pytest.raises(Damage):
            decode_line(bad)


def test_a_line_is_at_most_one_mebibyte_long_for_writers_and_readers() -> None:
    ids = tuple(f"{number:064x}" for number in range(1, 15_648))
    longest = CheckpointsDeleted(**HERE, ids=ids)
    line, _ = encode_line(longest)
    assert MAX_LINE - 67 < len(line) <= MAX_LINE
    assert decode_line(line)[0] == longest
    with pytest.raises(Refused, match="1048576 are allowed"):
        encode_line(CheckpointsDeleted(**HERE, ids=(*ids, A)))
    with pytest.raises(Damage, match="longer than"):
        decode_line(sealed('{"op":"delete","x":"' + "y" * MAX_LINE + '"'))


def test_a_line_of_an_expunge_holds_5000_checkpoints_with_room_for_long_patterns() -> None:
    pairs = tuple((f"{number:064x}", f"{number + 10_000:064x}") for number in range(1, 5001))
    longest = PathsExpunged(**HERE, pattern="x" * 300_000, replaced=pairs, packs=(RANGE,) * 100)
    assert decode_line(encode_line(longest)[0])[0] == longest


def test_a_path_reads_the_same_whatever_its_writer_held_printable() -> None:
    # U+1FAE9 is printable since Unicode 16 only: older writers escape it, newer ones do not.
    for path in ("/\U0001fae9", "/\\xf0\\x9f\\xab\\xa9"):
        operation = replace(REGISTERED, path=path)
        assert decode_line(encode_line(operation)[0])[0] == operation


HUGE = 1 << 63
FAULTS: dict[str, tuple[AnyOperation, dict[str, Any]]] = {
    "seq 0": (REGISTERED, {"seq": 0}),
    "seq too high": (REGISTERED, {"seq": HUGE}),
    "time too high": (REGISTERED, {"time": HUGE}),
    "prev too short": (REGISTERED, {"prev": "ab"}),
    "prev in capitals": (REGISTERED, {"prev": "A" * 64}),
    "prev with a line feed": (REGISTERED, {"prev": A + "\n"}),
    "no line before the seventh": (REGISTERED, {"prev": NO_PREVIOUS}),
    "a line before the first": (CREATED, {"prev": A}),
    "no workspace": (FORGOTTEN, {"workspace": ""}),
    "relative path": (REGISTERED, {"path": "home"}),
    "path that is not escaped": (REGISTERED, {"path": "/a\\b"}),
    "path with NUL": (REGISTERED, {"path": "/a\\x00"}),
    "id too short": (MADE, {"id": "ab"}),
    "no id": (MADE, {"id": ""}),
    "id of a good one too short": (FOUND_GOOD, {"ids": (A, "ab")}),
    "parent too short": (MADE, {"parent": "ab"}),
    "step 0": (MADE, {"step": 0}),
    "negative count": (MADE, {"counts": (0, -1, 0)}),
    "negative skipped": (MADE, {"skipped": -1}),
    "new bytes too high": (MADE, {"new_bytes": HUGE}),
    "name of a pack": (MADE, {"packs": (PackRange("../x", 64, 168, 120),)}),
    "index before its range": (MADE, {"packs": (PackRange("0" * 32, 64, 168, 56),)}),
    "index behind its range": (MADE, {"packs": (PackRange("0" * 32, 64, 168, 168),)}),
    "odd range": (MADE, {"packs": (PackRange("0" * 32, 64, 170, 120),)}),
    "negative range": (MADE, {"packs": (PackRange("0" * 32, -8, 168, 120),)}),
    "range beyond any pack": (MADE, {"packs": (PackRange("0" * 32, 64, (1 << 32) + 8, 120),)}),
    "nonce with a slash": (BEGUN, {"nonce": "a/b"}),
    "no nonce": (BEGUN, {"nonce": ""}),
    "absolute path in a rollback": (BEGUN, {"paths": ("/a",)}),
    "path out of the workspace": (BEGUN, {"paths": ("../a",)}),
    "no safety": (BEGUN, {"safety": ""}),
    "no undo target": (BEGUN, {"undo_safety": ""}),
    "head after too short": (BEGUN, {"head_after": "ab"}),
    "end of itself": (ENDED, {"begin": 7}),
    "end of nothing": (ENDED, {"begin": 0}),
    "late too short": (ENDED, {"late": "ab"}),
    "deleted too short": (DELETED, {"ids": (A, "ab")}),
    "undeleted too short": (UNDELETED, {"id": "ab"}),
    "verified too short": (VERIFIED, {"id": "ab"}),
    "freed too short": (FREED, {"freed": (A, "ab")}),
    "cut of no pack": (FREED, {"cuts": (PackCut("../x", 64),)}),
    "negative cut": (FREED, {"cuts": (PackCut("0" * 32, -8),)}),
    "odd cut": (FREED, {"cuts": (PackCut("0" * 32, 68),)}),
    "cut beyond any pack": (FREED, {"cuts": (PackCut("0" * 32, (1 << 32) + 8),)}),
    "range of a gc": (FREED, {"packs": (PackRange("../x", 64, 168, 120),)}),
    "negative faults": (CHECKED, {"found": -1}),
    "negative healed": (REPAIRED, {"healed": -1}),
    "lost too high": (REPAIRED, {"lost": HUGE}),
    "before too short": (REPAIRED, {"before": "ab"}),
    "range of a repair": (REPAIRED, {"packs": (PackRange("0" * 32, 64, 168, 168),)}),
    "expunge of no workspace": (EXPUNGED, {"workspace": ""}),
    "expunged too short": (EXPUNGED, {"replaced": ((A, "ab"),)}),
    "nothing took its place": (EXPUNGED, {"replaced": ((A, ""),)}),
    "replaced twice": (EXPUNGED, {"replaced": ((A, B), (A, "c" * 64))}),
    "one for two": (EXPUNGED, {"replaced": ((A, B), ("c" * 64, B))}),
    "replaced by itself": (EXPUNGED, {"replaced": ((A, A),)}),
    "a chain": (EXPUNGED, {"replaced": ((A, B), (B, "c" * 64))}),
    "range of an expunge": (EXPUNGED, {"packs": (PackRange("0" * 32, 64, 170, 120),)}),
}


@pytest.mark.parametrize("rule", FAULTS)
def test_a_field_that_no_apply_could_use_is_neither_written_nor_read(rule: str) -> None:
    operation, change = FAULTS[rule]
    bad = replace(operation, **change)
    with pytest.raises(ValueError, match="cannot write line"):
        encode_line(bad)
    with pytest.raises(Damage, match="cannot read line"):
        decode_line(sealed(msgspec.json.encode(bad)[:-1].decode()))


def test_no_line_cuts_a_pack_twice() -> None:
    """What lies behind the one cut and what behind the other could not be told apart."""
    twice = SpaceFreed(**CHAIN, cuts=(PackCut("0" * 32, 64), PackCut("0" * 32, 0)))
    with pytest.raises(ValueError, match="a pack is cut twice"):
        encode_line(twice)
