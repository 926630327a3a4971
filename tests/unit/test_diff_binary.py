"""Binary patches: what git reads back is exact, and as small as one side lets the other be."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap.engine.diffing import binary
from casnap.engine.diffing.binary import make_delta
from casnap.engine.diffing.patch import Style, patch_of
from casnap.model.change import Aspect, Change, ChangeKind
from casnap.model.tree import File

BYTES = st.lists(st.sampled_from([b"\0", b"\n", b"abc", b"\xff" * 40, b"xyz\n"]), max_size=60).map(b"".join)


def patched(delta: bytes, old: bytes) -> bytes:
    """A delta undone by the description of git's pack format (gitformat-pack(5), "Deltified representation")."""

    def number(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            value |= (delta[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if not delta[at - 1] & 0x80:
                return value, at

    source, at = number(0)
    target, at = number(at)
    out = b""
    while at < len(delta):
        code, at = delta[at], at + 1
        if code & 0x80:
            fields = bytearray(7)
            for bit in range(7):
                if code >> bit & 1:
                    fields[bit], at = delta[at], at + 1
            start, length = int.from_bytes(fields[:4], "little"), int.from_bytes(fields[4:], "little") or 0x10000
            assert start + length <= len(old)
            out += old[start : start + length]
        else:
            assert code
            out, at = out + delta[at : at + code], at + code
    assert (source, target) == (len(old), len(out))
    return out


@given(old=BYTES, new=BYTES, most=st.sampled_from([0, 1_000_000]))
def test_a_delta_gives_the_new_bytes(old: bytes, new: bytes, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binary, "COMPARED_LINES", most)
        assert patched(make_delta(old, new), old) == new


@pytest.mark.parametrize("gap", [b"", b"inserted" * 50])
def test_a_delta_of_a_large_file_is_as_large_as_what_changed(gap: bytes) -> None:
    old = random.Random(1).randbytes(20_000_000)
    new = old[:9_999_999] + gap + old[10_000_001:]
    delta = make_delta(old, new)
    assert patched(delta, old) == new
    assert len(delta) < 2000 + 2 * len(gap)


@pytest.mark.parametrize("length", [1, 3, 4, 5, 51, 52, 53, 1000, 70_000])
def test_git_reads_what_is_written_forth_and_back(length: int, tmp_path: Path) -> None:
    rng = random.Random(length)
    old, new = b"\0" + rng.randbytes(length), b"\0" + rng.randbytes(length + 7)
    both = [(old, new), (b"", new), (old, old[:-1] + b"!"), (old * 3, old)]
    for number, (before, after) in enumerate(both):
        path = tmp_path / f"f{number}"
        path.write_bytes(before)
        sides = (File(b"f", 0o644, 0, 0, 0, 0, (), len(data), 0, data, b"") for data in (before, after))
        change = Change(path.name.encode(), ChangeKind.CHANGED, *sides, Aspect.CONTENT)
        text = patch_of(change, before, after, Style(binary=True)).text
        for options, expected in (((), after), (("-R",), before)):
            subprocess.run(["git", "apply", "--unsafe-paths", *options], cwd=tmp_path, input=text, check=True)
            assert path.read_bytes() == expected
