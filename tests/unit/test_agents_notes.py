"""What hooks remember, wherever there is room for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from casnap.agents import notes as module
from casnap.agents.notes import KEPT, MOST_SESSIONS, Failure, Fired, Notebook, Notes, Turn, notebook

STORE = Path("/store")


def book(*places: Path) -> Notebook:
    return Notebook(tuple(place / "casnap" / "hooks" for place in places), STORE)


def noted(directory: str, **more: object) -> Notes:
    return replace(Notes(directory, str(STORE)), **more)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    told = noted(
        "/w",
        written=5,
        workspace="/w",
        agents={"codex": Fired(7, "prompt", "x")},
        sessions={"s": Turn("t", 3, begun=True)},
        boot="b",
        looked=9,
        failure=Failure(1, "codex", "no", "hint", refused=True),
    )
    assert book(tmp_path).write(told)
    assert book(tmp_path).read("/w") == told
    assert book(tmp_path).all() == [told]


def test_another_store_and_another_directory_know_nothing_of_it(tmp_path: Path) -> None:
    book(tmp_path).write(noted("/w", written=5))
    other = Notebook((tmp_path / "casnap" / "hooks",), Path("/other"))
    assert other.read("/w") == Notes("/w", "/other")
    assert other.all() == []
    assert book(tmp_path).read("/v") == noted("/v")


def test_a_file_that_is_damaged_is_no_note(tmp_path: Path) -> None:
    book(tmp_path).write(noted("/w", written=5))
    (file,) = (tmp_path / "casnap" / "hooks").iterdir()
    for data in (b"", b"{}", b"\xff", b"[" * 100_000, file.read_bytes()[:-5]):
        file.write_bytes(data)
        assert book(tmp_path).read("/w") == noted("/w")
        assert book(tmp_path).all() == []


def test_where_the_first_place_cannot_be_written_the_next_is_and_the_newest_counts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    good, never = tmp_path / "good", tmp_path / "file"
    assert book(never, good).write(noted("/w", written=1))
    assert book(never, good).read("/w").written == 1
    book(tmp_path / "first").write(noted("/w", written=2))
    assert book(tmp_path / "first", good).read("/w").written == 2
    assert [one.written for one in book(tmp_path / "first", good).all()] == [2]
    assert not book(never).write(noted("/w"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_on_a_full_disk_it_is_remembered_elsewhere(tmp_path: Path) -> None:
    full, other = tmp_path / "full", tmp_path / "other"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", full], check=True)
    try:
        book(full).write(noted("/w", written=1))
        with pytest.raises(OSError, match="No space"):
            (full / "rest").write_bytes(bytes(1 << 20))
        assert book(full, other).write(noted("/w", written=2))
        assert book(full, other).read("/w").written == 2
    finally:
        subprocess.run(["umount", full], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_directory_that_somebody_else_made_before_us_is_not_used(tmp_path: Path) -> None:
    theirs = tmp_path / "casnap"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)
    assert not book(tmp_path).write(noted("/w"))
    (theirs / "hooks").mkdir()
    (theirs / "hooks" / "x.json").write_bytes(b'{"directory": "/w", "store": "/store", "written": 9}')
    assert book(tmp_path).all() == []


def test_a_link_and_a_directory_that_others_may_write_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "casnap").symlink_to("real")
    assert not book(tmp_path).write(noted("/w"))
    (tmp_path / "open" / "casnap").mkdir(parents=True)
    (tmp_path / "open" / "casnap").chmod(0o777)
    assert not book(tmp_path / "open").write(noted("/w"))


def test_few_sessions_are_remembered_the_newest() -> None:
    notes = noted("/w")
    for number in range(MOST_SESSIONS + 5):
        notes = notes.with_turn("codex", f"s{number}", Turn(str(number)))
    assert len(notes.sessions) == MOST_SESSIONS
    known = [notes.turn_of("codex", f"s{number}").id for number in range(MOST_SESSIONS + 5)]
    assert known == [""] * 5 + [str(number) for number in range(5, MOST_SESSIONS + 5)]
    assert notes.with_turn("codex", "s9", Turn("new")).turn_of("codex", "s9") == Turn("new")


@pytest.mark.parametrize("session", ["main", "default", "", "a\0b"])
def test_sessions_of_two_agents_are_two_whatever_they_are_called(session: str) -> None:
    notes = noted("/w").with_turn("codex", session, Turn("1"))
    assert notes.turn_of("hermes", session) == notes.turn_of("", session) == Turn()
    both = notes.with_turn("hermes", session, Turn("2"))
    assert (both.turn_of("codex", session).id, both.turn_of("hermes", session).id) == ("1", "2")


def test_sessions_that_were_remembered_without_their_agent_begin_anew(tmp_path: Path) -> None:
    book(tmp_path).write(noted("/w", written=5, sessions={"main": Turn("t", 3, begun=True, covered=True)}))
    notes = book(tmp_path).read("/w")
    assert (notes.written, notes.turn_of("codex", "main"), notes.turn_of("", "main")) == (5, Turn(), Turn())


@pytest.mark.parametrize(
    ("notes", "seen"),
    [
        (noted("/w", boot="b", looked=10), True),
        (noted("/w", boot="b", looked=11), True),
        (noted("/w", boot="b", looked=9), False),
        (noted("/w", boot="another", looked=11), False),
        (noted("/w", boot="", looked=11), False),
        (noted("/w", boot="b", looked=11, failure=Failure(1, "a", "no")), False),
    ],
)
def test_a_scan_counts_that_began_after_a_call_did_in_the_same_boot_and_went_well(notes: Notes, seen: bool) -> None:
    assert notes.saw_since(10, "b") == seen
    assert not notes.saw_since(10, "")


def test_whoever_holds_a_directory_keeps_others_waiting(tmp_path: Path) -> None:
    with book(tmp_path).locked("/w", 0) as first:
        assert first
        assert book(tmp_path).is_busy("/w")
        assert not book(tmp_path).is_busy("/v")
        asked = []
        with book(tmp_path).locked("/w", 60, lambda: bool(asked.append(1)) or len(asked) > 1) as second:
            assert not second
    assert len(asked) == 2
    assert not book(tmp_path).is_busy("/w")


def test_where_there_is_no_place_for_a_lock_nobody_waits(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    nowhere = book(tmp_path / "file")
    with nowhere.locked("/w", 60) as first, nowhere.locked("/w", 60) as second:
        assert first
        assert second


def test_what_nobody_has_asked_for_in_a_long_time_is_forgotten(tmp_path: Path) -> None:
    book(tmp_path).write(noted("/old", written=1))
    book(tmp_path).write(noted("/new", written=2))
    now = 10**18
    for path in (tmp_path / "casnap" / "hooks").iterdir():
        old = b"/old" in path.read_bytes()
        os.utime(path, ns=(0, now - KEPT - 1 if old else now - KEPT))
    book(tmp_path).forget_old(now)
    assert [one.directory for one in book(tmp_path).all()] == ["/new"]


def test_the_places_are_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.os, "geteuid", lambda: 7)
    homes = [str(place) for place in notebook({"XDG_RUNTIME_DIR": "/run/user/7"}, b"/home/u", STORE)._candidates]
    assert homes[:2] == ["/home/u/.local/state/casnap/hooks", "/run/user/7/casnap/hooks"]
    assert all("casnap-7" in place for place in homes[2:])
    stated = [str(place) for place in notebook({"XDG_STATE_HOME": "/state"}, b"/home/u", STORE)._candidates]
    assert stated[0] == "/state/casnap/hooks"
    assert notebook({"XDG_STATE_HOME": "relative"}, None, STORE)._candidates[0].name == "hooks"
