"""The fuzz targets, for a moment each: they run, their inputs keep the law, and each way to break it is found."""

from __future__ import annotations

import dataclasses
import importlib.util
import mmap
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from casnap.codec.compression import MAX_RAW, compress
from casnap.codec.hashing import checksum, content_id
from casnap.codec.records import RecordKind, encode_record
from casnap.errors import Damage, Refused
from fuzz import memory, slow_patterns
from fuzz.findings import replay
from fuzz.inputs import CORPUS, corpus, keep, known
from fuzz.law import Target, encodes_to_itself, judge
from fuzz.targets import TARGETS
from fuzz.with_hypothesis import search
from support.source import CHECKOUT

BY_NAME = {target.name: target for target in TARGETS}
EXAMPLES = 100

each = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)


@each
def test_every_seed_is_accepted_and_sealed_as_it_is(target: Target[Any]) -> None:
    for seed in target.seeds:
        assert target.fault(target.parse(seed), seed) is None
        assert target.seal(seed) == seed


@each
def test_all_inputs_that_are_kept_keep_the_law(target: Target[Any]) -> None:
    assert replay(target, known(target)) == (len(known(target)), None)


@each
def test_some_damaged_inputs_keep_the_law(target: Target[Any]) -> None:
    run = search(target, known(target), EXAMPLES, derandomize=True)
    assert run.finding is None
    assert run.executions >= EXAMPLES // 2


def test_the_corpus_is_small_and_belongs_to_targets() -> None:
    kept = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert {path.parent.name for path in kept} <= BY_NAME.keys()
    assert {path.parent.parent for path in kept} == {CORPUS}
    assert sum(path.stat().st_size for path in kept) < 32_000


def test_every_file_of_a_target_is_one_of_the_targets() -> None:
    files = {path.stem.replace("_", "-") for path in (CHECKOUT / "fuzz" / "targets").glob("*.py")}
    assert files - {"--init--", "samples"} == BY_NAME.keys()


@pytest.mark.parametrize("target", [target for target in TARGETS if target.errors], ids=lambda target: target.name)
def test_every_documented_error_is_one_that_the_target_can_raise(target: Target[Any]) -> None:
    raised: set[type[Exception]] = set()
    for data in [b"", b"@{", b"\xff", *_damaged_numbers(target), *known(target)]:
        try:
            target.parse(data)
        except target.errors as error:
            raised.add(type(error))
    assert raised == set(target.errors)


def _damaged_numbers(target: Target[Any]) -> list[bytes]:
    """The first seed with another byte where versions, kinds and operations stand, its checksums right again."""
    seed = target.seeds[0]
    return [target.seal(seed[:place] + b"z" + seed[place + 1 :]) for place in (4, 8, 9)]


# Ways to break the law: a planted fault of each, as a parser that has it.


def planted(**changes: Any) -> Target[Any]:
    return dataclasses.replace(Target("planted", bytes, (Damage,), encodes_to_itself(bytes), (b"seed" * 8,)), **changes)


def crash(data: bytes) -> bytes:
    if b"\xff" in data:
        raise IndexError("of a bug")
    return data


def refuse(data: bytes) -> bytes:
    if len(data) > 32:
        raise Refused("it is too long")
    return data


def strip(data: bytes) -> bytes:
    return data.rstrip(b"\0")


def believe(data: bytes) -> bytes:
    """Takes memory for whatever length the first bytes claim, up to 16 MiB."""
    bytearray(int.from_bytes(data[:3]))
    return data


@pytest.mark.parametrize(
    ("parse", "fault"),
    [
        (crash, "it raised IndexError: of a bug"),
        (refuse, "it raised Refused: it is too long"),
        (strip, "it was accepted, but is encoded differently"),
        (believe, "bytes of memory"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_fault_of_each_kind_is_found_and_made_small(parse: Any, fault: str) -> None:
    target = planted(parse=parse)
    finding = search(target, target.seeds, 500, derandomize=True).finding
    assert finding is not None
    assert fault in finding.fault
    assert judge(target, finding.data) == finding.fault
    assert len(finding.data) <= 33


def test_an_encoder_that_fails_for_what_was_accepted_is_a_fault() -> None:
    def encode(value: bytes) -> bytes:
        raise ValueError("no")

    assert judge(planted(fault=encodes_to_itself(encode)), b"x") == "it was accepted, but then came ValueError: no"


def test_memory_is_counted_for_inputs_that_are_refused_too() -> None:
    def parse(data: bytes) -> bytes:
        bytearray(8 << 20)
        raise Damage("no")

    assert "it took 8,3" in str(judge(planted(parse=parse), b"x"))
    assert judge(planted(parse=parse, unpacked=9 << 20), b"x") is None


HUGE = 0xFFFFFFFF
CRAFTED = [
    ("tree", b"\x92\1\xdd\xff\xff\xff\xff"),
    ("tree", b"\x92\1\x91\x93\6\xc6\xff\xff\xff\xff"),
    ("tree", b"\x93\2\1\xdd\xff\xff\xff\xff\x93"),
    ("chunk-list", b"\x92\1\xdd\xff\xff\xff\xff\x92"),
    ("checkpoint", b"\x9c\1\xdb\xff\xff\xff\xff"),
    ("group", HUGE.to_bytes(4, "little") + bytes(16)),
    ("group", b"\1\0\0\0\1" + HUGE.to_bytes(4, "little")),
    ("index", HUGE.to_bytes(4, "little") + bytes(39)),
    ("line", BY_NAME["line"].seal(b'{"op":"store-created","seq":1,"time":1,"prev":"","format":' + b"[" * 9000)),
    ("metadata", b'{"a":' + b"9" * 9000 + b"}"),
    ("revision", b"a~" + b"9" * 900),
]


@pytest.mark.parametrize(("name", "data"), CRAFTED)
def test_a_length_that_an_input_claims_takes_no_memory(name: str, data: bytes) -> None:
    assert judge(dataclasses.replace(BY_NAME[name], unpacked=0), data) is None


FRAME_OF_4_GIB = bytes.fromhex("28b52ffd a0 ffffffff 010000")


@pytest.mark.parametrize("raw_size", [1, 8, MAX_RAW, HUGE])
@pytest.mark.parametrize("payload_size", [len(FRAME_OF_4_GIB), MAX_RAW, HUGE])
@pytest.mark.parametrize("encoding", [1, 2])
def test_the_lengths_in_a_record_take_no_memory(encoding: int, payload_size: int, raw_size: int) -> None:
    header = bytes.fromhex("c5726563 01") + bytes([encoding, 0, 0])
    header += payload_size.to_bytes(4, "little") + raw_size.to_bytes(4, "little") + bytes(16)
    data = header + checksum(header) + FRAME_OF_4_GIB + checksum(FRAME_OF_4_GIB) + bytes(4)
    assert judge(dataclasses.replace(BY_NAME["record"], unpacked=0), data) is None


def test_an_input_that_unpacks_to_the_limit_takes_the_limit_once() -> None:
    zeros = bytes(MAX_RAW)
    bomb = encode_record(RecordKind.CHUNK, content_id(zeros), *compress(zeros, 3), len(zeros))
    assert len(bomb) < 1000
    assert judge(BY_NAME["record"], bomb) is None
    assert "bytes of memory" in str(judge(dataclasses.replace(BY_NAME["record"], unpacked=MAX_RAW // 2), bomb))


def test_what_libraries_take_is_bounded_for_the_whole_process() -> None:
    code = "from fuzz import memory; import mmap; memory.bound(); mmap.mmap(-1, memory.ROOM + (1 << 20))"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert "Cannot allocate memory" in done.stderr
    mmap.mmap(-1, memory.ROOM + (1 << 20)).close()


def test_what_breaks_the_law_is_kept_and_a_run_ends_with_1(tmp_path: Path) -> None:
    kept = keep(planted(), b"bad", tmp_path)
    assert kept.read_bytes() == b"bad"
    assert kept.parent == tmp_path / "planted"
    assert keep(planted(), b"bad", tmp_path) == kept
    assert corpus(planted()) == []


def test_a_run_says_how_many_executions_each_target_had() -> None:
    command = [sys.executable, "-m", "fuzz.run", "--seconds", "0", "--engine", "hypothesis", "name", "tree"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    heading, *rows = done.stdout.splitlines()
    assert heading == "inputs by hypothesis, 0 seconds for each target"
    assert [row.split()[0::2] for row in rows] == [["tree", "executions"], ["name", "executions"]]
    assert [int(row.split()[1]) for row in rows] == [len(known(BY_NAME["tree"])), len(known(BY_NAME["name"]))]


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="Atheris is not installed")
def test_atheris_runs_a_target() -> None:
    from fuzz import with_atheris

    run = with_atheris.run(BY_NAME["pack-header"], 1)
    assert run.finding is None
    assert run.executions > 100


@pytest.mark.parametrize(
    ("rules", "path", "verdict"),
    [
        (b"a", b"x/a", True),
        (b"/a", b"x/a", None),
        (b"a/", b"a", None),
        (b"*\n!a", b"a", False),
        (b"a\\ ", b"a ", True),
        (b"a ", b"a", True),
        (b"x/**/a", b"x/a", True),
        (b"x/**/a", b"x/y/z/a", True),
        (b"x/*/a", b"x/y/z/a", None),
        (b"x/**", b"x/y/z", True),
        (b"x/**", b"x", None),
        (b"[!a-c]", b"d", True),
        (b"[!a-c]", b"b", None),
        (b"[[:digit:]]", b"7", True),
        (b"[a", b"[a", None),
    ],
)
def test_the_slow_reader_of_ignore_files_reads_as_gitignore_says(
    rules: bytes, path: bytes, verdict: bool | None
) -> None:
    assert slow_patterns.verdict(rules, path, is_directory=False) is verdict


def test_a_byte_of_input_may_cost_what_json_makes_of_it() -> None:
    body = b'{"op":"store-created","seq":1,"time":1,"prev":"' + b"0" * 64 + b'","format":{"a":[' + b"{}," * 20_000
    line = BY_NAME["line"].seal(body[:-1] + b"]}")
    assert judge(BY_NAME["line"], line) is None
    assert BY_NAME["line"].fault(BY_NAME["line"].parse(line), line) is None
