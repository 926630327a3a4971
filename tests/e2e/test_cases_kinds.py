"""Field cases, group D: kinds of entries, their metadata and their names."""

from __future__ import annotations

import base64
import errno
import itertools
import mmap
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from casnap import CheckpointManager
from casnap.fs import placing
from casnap.workspace import reader, rounds
from support import cli
from support.cases import account, as_ordinary_user, remove, restores_to, swapping
from support.cases import run_here as run
from support.oracle import difference, inodes, snapshot
from support.scanning import deadline
from support.trees import ODD_NAMES

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="devices, owners and capabilities take root")

ROUNDS = int(os.environ.get("CASNAP_CRASH_ROUNDS", "2"))

SPARSE = 128 << 20
"""Bytes of a file that is nearly all hole."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "ws"
    directory.mkdir()
    return directory


@pytest.fixture
def manager(workspace: Path) -> Iterator[CheckpointManager]:
    with CheckpointManager(workspace) as found:
        yield found


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path / "outside"
    directory.mkdir(mode=0o750)
    for name in ("f", "g", "keep"):
        (directory / name).write_text(f"outside {name}")
        os.chmod(directory / name, 0o640)
        os.utime(directory / name, ns=(1, 1_500_000_000_000_000_001))
    return directory


@pytest.fixture(autouse=True)
def nothing_hangs() -> Iterator[None]:
    with deadline(120):
        yield


def test_case_054_a_pipe_is_captured_compared_and_restored_without_waiting(
    workspace: Path, manager: CheckpointManager
) -> None:
    os.mkfifo(workspace / "p", 0o620)
    (workspace / "x").write_text("a file")
    manager.create("one")
    first = snapshot(workspace)
    (workspace / "p").unlink()
    (workspace / "x").unlink()
    os.mkfifo(workspace / "x")
    manager.create("two")
    second = snapshot(workspace)
    assert [(change.path, change.kind.value) for change in manager.diff("one")] == [(b"p", "D"), (b"x", "T")]
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []
    assert manager.verify("one")
    manager.rollback("two")
    assert difference(second, snapshot(workspace)) == []


def test_case_054_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "x").write_text("one")
    manager.create("one")
    first = snapshot(workspace)
    (workspace / "x").write_text("two")
    open_file = reader.open_file

    def swap_then_open(directory: int, name: bytes) -> int:
        if name == b"x" and stat.S_ISREG((workspace / "x").lstat().st_mode):
            (workspace / "x").unlink()
            os.mkfifo(workspace / "x")
        return open_file(directory, name)

    monkeypatch.setattr(rounds, "open_file", swap_then_open)
    manager.create("two")
    monkeypatch.undo()
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []
    manager.rollback("two")
    assert stat.S_ISFIFO((workspace / "x").lstat().st_mode)


def test_case_055_a_live_socket_is_kept_with_its_directory_and_named(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "f").write_text("one")
    manager.create("one")
    (workspace / "f").write_text("two")
    (workspace / "new").mkdir()
    (workspace / "new" / "g").write_text("new")
    monkeypatch.chdir(workspace / "new")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s.sock")
        listener.listen()
        done = run("rollback", "-w", workspace, "one")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("s.sock")
    assert done.status in (0, 3)
    assert "kept: new/s.sock" in done.stderr
    assert (workspace / "f").read_text() == "one"
    assert os.listdir(workspace / "new") == ["s.sock"]


@root_only
def test_case_055_devices_are_captured_and_never_opened(workspace: Path, manager: CheckpointManager) -> None:
    os.mknod(workspace / "c", stat.S_IFCHR | 0o600, os.makedev(9, 250))
    os.mknod(workspace / "b", stat.S_IFBLK | 0o640, os.makedev(9, 251))
    os.mknod(workspace / "tty", stat.S_IFCHR | 0o600, os.makedev(4, 64))
    os.chmod(workspace / "b", 0o640)
    manager.create("one")
    first = snapshot(workspace)
    for name in ("b", "tty"):
        (workspace / name).unlink()
    (workspace / "c").unlink()
    os.mknod(workspace / "c", stat.S_IFCHR | 0o600, os.makedev(9, 252))
    (workspace / "b").write_text("a file")
    second = snapshot(workspace)
    assert manager.rollback("one").complete
    assert difference(first, snapshot(workspace)) == []
    assert manager.undo().complete
    assert difference(second, snapshot(workspace)) == []


@pytest.mark.parametrize("root_mode", [0o755, 0o555])
def test_case_056_read_only_directories_are_filled_by_their_owner(root_mode: int) -> None:
    def act(user: Path) -> None:
        workspace = user / "ws"
        (workspace / "d" / "e").mkdir(parents=True)
        (workspace / "d" / "e" / "g").write_text("one")
        (workspace / "d" / "f").write_text("one")
        modes = {"d/f": 0o444, "d/e": 0o500, "d": 0o555, ".": root_mode}
        for path, mode in modes.items():
            os.chmod(workspace / path, mode)
        manager = CheckpointManager(workspace, store=user / "store")
        manager.create("one")
        first = snapshot(workspace)
        for path in ("d", "d/e"):
            os.chmod(workspace / path, 0o755)
        (workspace / "d" / "f").unlink()
        (workspace / "d" / "new").write_text("new")
        (workspace / "d" / "e" / "g").write_text("two")
        for path, mode in modes.items():
            if path != "d/f":
                os.chmod(workspace / path, mode)
        second = snapshot(workspace)
        assert manager.rollback("one").complete
        assert difference(first, snapshot(workspace)) == []
        assert manager.undo().complete
        assert difference(second, snapshot(workspace)) == []
        made: list[bytes] = []
        create = placing.create_file

        def fail(*args: object, **options: object) -> object:
            made.append(b"")
            if len(made) == 2:
                raise OSError(errno.ENOSPC, "No space left on device")
            return create(*args, **options)  # type: ignore[arg-type]

        placing.create_file = fail  # type: ignore[assignment]
        with pytest.raises(Exception, match="nothing was changed"):
            manager.rollback("one")
        placing.create_file = create
        assert difference(second, snapshot(workspace)) == []

    as_ordinary_user(act)


def test_case_057_what_cannot_be_read_is_named_and_left_as_it_is() -> None:
    def act(user: Path) -> None:
        workspace = user / "ws"
        (workspace / "closed").mkdir(parents=True)
        (workspace / "closed" / "inner").write_text("inner")
        for number in range(10):
            (workspace / f"f{number}").write_text("one")
        (workspace / "f7").chmod(0)
        (workspace / "closed").chmod(0)
        hidden = [(workspace / name).lstat() for name in ("f7", "closed")]
        options = ("--store", user / "store", "-w", workspace)
        made = run("checkpoint", *options, "one", "--json", check=3)
        assert sorted(problem["path"] for problem in made.json()["problems"]) == ["closed", "f7"]
        assert made.json()["checkpoint"]["skipped"] == 2
        for number in (*range(7), 8, 9):
            (workspace / f"f{number}").write_text("two")
        done = run("rollback", *options, "one")
        assert done.status == 3
        for name in ("f7", "closed"):
            assert f"kept: {name}" in done.stderr
        assert {(workspace / f"f{number}").read_text() for number in (*range(7), 8, 9)} == {"one"}
        assert [(workspace / name).lstat()[:7] for name in ("f7", "closed")] == [status[:7] for status in hidden]
        assert [(workspace / name).lstat().st_ctime_ns for name in ("f7", "closed")] == [
            status.st_ctime_ns for status in hidden
        ]
        (workspace / "f7").chmod(0o600)
        (workspace / "closed").chmod(0o700)
        assert (workspace / "f7").read_text() == "one"
        assert (workspace / "closed" / "inner").read_text() == "inner"

    as_ordinary_user(act)


def test_case_058_only_what_differs_is_written(workspace: Path, manager: CheckpointManager) -> None:
    for name in ("a", "b", "c"):
        (workspace / name).write_text("one")
        os.utime(workspace / name, ns=(1, 1_600_000_000_000_000_007))
    manager.create("one")
    (workspace / "b").write_text("two")
    before = inodes(workspace)
    manager.rollback("one")
    after = inodes(workspace)
    assert (after[b"a"], after[b"c"]) == (before[b"a"], before[b"c"])
    assert after[b"b"][1] == 1_600_000_000_000_000_007


def keep_times(path: Path, act: Callable[[], None]) -> None:
    status = path.stat()
    act()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def through_rename(path: Path) -> None:
    path.with_name("new").write_text("bbbb")
    os.rename(path.with_name("new"), path)


def through_mapping(path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:] = b"bbbb"
        mapped.flush()


def in_place(path: Path) -> None:
    path.write_text("bbbb")


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("edit", [in_place, through_rename, through_mapping])
def test_case_059_an_edit_of_the_same_size_and_time_is_seen(
    workspace: Path, manager: CheckpointManager, tmp_path: Path, edit: Callable[[Path], None], settled: bool
) -> None:
    (workspace / "f").write_text("aaaa")
    manager.create("one")
    if settled:
        manager.create("settled")
    keep_times(workspace / "f", lambda: edit(workspace / "f"))
    manager.create("two")
    manager.restore_to(tmp_path / "two", "two")
    assert (tmp_path / "two" / "f").read_text() == "bbbb"
    assert [change.path for change in manager.diff("one", "two")] == [b"f"]


def test_case_059_edits_that_follow_at_once_are_all_captured(
    workspace: Path, manager: CheckpointManager, tmp_path: Path
) -> None:
    for number in range(ROUNDS * 8):
        (workspace / "f").write_text(f"{number:04}")
        manager.create(f"c{number}")
        keep_times(workspace / "f", lambda number=number: (workspace / "f").write_text(f"{number:04}"[::-1]) and None)
        manager.create(f"r{number}")
    for checkpoint in manager.list():
        assert checkpoint.name is not None
        text = f"{int(checkpoint.name[1:]):04}"
        manager.restore_to(tmp_path / "restored", checkpoint.id)
        assert (tmp_path / "restored" / "f").read_text() == (text if checkpoint.name[0] == "c" else text[::-1])
        remove(tmp_path / "restored")


def test_case_059_an_edit_during_the_checkpoint_is_in_the_next_one(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "f").write_text("aaaa")
    pread, acts = os.pread, [lambda: keep_times(workspace / "f", lambda: in_place(workspace / "f"))]

    def edit_behind(fd: int, size: int, offset: int) -> bytes:
        data = pread(fd, size, offset)
        if acts and data == b"aaaa":
            acts.pop()()
        return data

    monkeypatch.setattr(os, "pread", edit_behind)
    manager.create("one")
    assert acts == []
    monkeypatch.undo()
    manager.create("two")
    manager.rollback("two")
    assert manager.verify("two")
    assert (workspace / "f").read_text() == "bbbb"


TIMES = [1_700_000_000_999_999_931, 0, -1_000_000_000, -1, (1 << 33) * 1_000_000_000 + 1]


def test_case_061_times_keep_every_nanosecond(workspace: Path, manager: CheckpointManager) -> None:
    for number in range(len(TIMES)):
        (workspace / f"f{number}").write_text("one")
        (workspace / f"l{number}").symlink_to("nowhere")
        (workspace / f"d{number}").mkdir()
    names = [f"{kind}{number}" for kind in "fld" for number in range(len(TIMES))]
    for name in names:
        os.utime(workspace / name, ns=(1, TIMES[int(name[1:])]), follow_symlinks=False)
    manager.create("one")
    first = snapshot(workspace)
    for name in names:
        os.utime(workspace / name, follow_symlinks=False)
    assert manager.rollback("one").complete
    assert difference(first, snapshot(workspace)) == []
    assert not manager.diff("one")
    assert manager.create("again", if_changed=True).name == "one"


def test_case_062_bits_survive_the_rewriting_of_content(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "file").write_text("one")
    for name, mode in (("group", 0o2755), ("sticky", 0o1777)):
        (workspace / name).mkdir()
        os.chmod(workspace / name, mode)
    os.chmod(workspace / "file", 0o4755)
    manager.create("one")
    first = snapshot(workspace)
    (workspace / "file").write_text("two")
    os.chmod(workspace / "file", 0o755)
    for name in ("group", "sticky"):
        os.chmod(workspace / name, 0o700)
    assert manager.rollback("one").complete
    assert difference(first, snapshot(workspace)) == []


def test_case_062_no_setuid_bit_stands_on_partial_content(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(3 << 20)
    (workspace / "file").write_bytes(content)
    os.chmod(workspace / "file", 0o4755)
    manager.create("one")
    os.chmod(workspace / "file", 0o755)
    (workspace / "file").write_text("two")
    seen: list[tuple[int, int]] = []

    def look() -> None:
        for directory, _, names in os.walk(workspace):
            for name in names:
                status = os.lstat(os.path.join(directory, name))
                seen.append((status.st_mode, status.st_size))

    for module, name in ((os, "write"), (os, "fchmod"), (os, "fchown"), (os, "rename"), (os, "chmod")):
        act = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, act=act, **more: (look(), act(*args, **more), look())[1])
    manager.rollback("one")
    monkeypatch.undo()
    assert (workspace / "file").read_bytes() == content
    assert {size for mode, size in seen if mode & stat.S_ISUID} <= {len(content)}
    assert seen


@root_only
def test_case_062_capabilities_and_owners_come_back(workspace: Path, manager: CheckpointManager) -> None:
    capability = b"\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"  # cap_net_raw+ep
    (workspace / "ping").write_text("one")
    (workspace / "foreign").write_text("one")
    os.chown(workspace / "foreign", 4711, 4712)
    os.chmod(workspace / "foreign", 0o6755)
    os.setxattr(workspace / "ping", "security.capability", capability)
    manager.create("one")
    first = snapshot(workspace)
    for name in ("ping", "foreign"):
        (workspace / name).write_text("two")
        os.chown(workspace / name, 0, 0)
    assert manager.rollback("one").complete
    assert difference(first, snapshot(workspace)) == []
    assert os.getxattr(workspace / "ping", "security.capability") == capability


def test_case_062_what_its_user_may_not_set_is_reported_and_no_failure() -> None:
    if os.geteuid() != 0:
        pytest.skip("a file of another owner takes root")
    place = Path(tempfile.mkdtemp(prefix="casnap-shared-"))

    def act(user: Path) -> None:
        options = ("--store", user / "store", "-w", place)
        run("checkpoint", *options, "one", check=0)
        (place / "theirs").unlink()
        (place / "f").write_text("two")
        done = run("rollback", *options, "one", check=3)
        assert "theirs" in done.stderr
        assert (place / "theirs").read_text() == "one"
        assert not (place / "theirs").lstat().st_mode & stat.S_ISUID
        assert (place / "f").read_text() == "one"

    try:
        place.chmod(0o777)
        for name in ("theirs", "f"):
            (place / name).write_text("one")
            (place / name).chmod(0o666)
        (place / "theirs").chmod(0o4755)
        as_ordinary_user(act)
    finally:
        remove(place)


def test_case_064_extended_attributes_are_exact(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "d").mkdir()
    (workspace / "f").write_text("one")
    values = {f"user.k{number}": bytes([number]) * number for number in range(28)}
    values |= {"user.binary": b"\x00\xff\n", "user.empty": b""}
    for name in ("d", "f"):
        for key, value in values.items():
            os.setxattr(workspace / name, key, value)
    manager.create("one")
    first = snapshot(workspace)
    assert len(first[b"f"].xattrs) == 30
    for name in ("d", "f"):
        os.removexattr(workspace / name, "user.k3")
        os.setxattr(workspace / name, "user.binary", b"other")
        os.setxattr(workspace / name, "user.extra", b"extra")
    assert {change.path for change in manager.diff("one")} == {b"d", b"f"}
    assert manager.rollback("one").complete
    assert difference(first, snapshot(workspace)) == []


def test_case_064_a_file_system_without_attributes_is_a_problem_and_no_failure(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("f", "g"):
        (workspace / name).write_text("one")
        os.setxattr(workspace / name, "user.k", b"v")
    run("checkpoint", "-w", workspace, "one", check=0)
    for name in ("f", "g"):
        (workspace / name).unlink()

    def refuse(*args: object, **options: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", refuse)
    done = run("rollback", "-w", workspace, "one", check=3)
    assert {(workspace / name).read_text() for name in ("f", "g")} == {"one"}
    assert "problem: " in done.stderr


def test_case_065_hard_links_are_joined_again_and_lead_nowhere_else(
    workspace: Path, manager: CheckpointManager, tmp_path: Path
) -> None:
    (workspace / "a").write_text("one")
    (workspace / "c").mkdir()
    os.link(workspace / "a", workspace / "b")
    os.link(workspace / "a", workspace / "c" / "d")
    (tmp_path / "outside").write_text("one")
    os.link(tmp_path / "outside", workspace / "shared")
    manager.create("one")
    first = snapshot(workspace)
    shutil.copy2(workspace / "b", workspace / "copy")
    os.rename(workspace / "copy", workspace / "b")
    (workspace / "shared").write_text("two")
    before = account(tmp_path / "outside")
    assert manager.rollback("one").complete
    assert difference(first, snapshot(workspace)) == []
    assert first[b"a"].links == (b"a", b"b", b"c/d")
    assert account(tmp_path / "outside") == before


def test_case_066_restored_files_share_nothing_with_the_store(
    workspace: Path, manager: CheckpointManager, home: Path, tmp_path: Path
) -> None:
    noise = os.urandom(200_000)
    contents = {"empty": b"", "small": b"small", "large": noise, "closed": b"closed"}
    other = tmp_path / "other"
    other.mkdir()
    for directory in (workspace, other):
        for name, content in contents.items():
            (directory / name).write_bytes(content)
    manager.create("one")
    first = snapshot(workspace)
    remove(workspace)
    manager.rollback("one")
    with CheckpointManager(other) as second:
        second.create("one")
        theirs = snapshot(other)
        for name in contents:
            assert (workspace / name).stat().st_nlink == 1
            with (workspace / name).open("r+b") as file:
                file.write(b"IN PLACE")
                file.seek(0, os.SEEK_END)
                file.write(b" and appended")
        (workspace / "closed").chmod(0)
        assert restores_to(manager, tmp_path / "scratch", {"one": first}) == 2
        (workspace / "closed").chmod(0o600)  # or a user's rollback leaves it alone
        manager.rollback("one")
        assert difference(first, snapshot(workspace)) == []
        remove(other)
        second.rollback("one")
        assert difference(theirs, snapshot(other)) == []
    assert restores_to(manager, tmp_path / "scratch", {"one": first}) == 3
    assert {path.lstat().st_nlink for path in (home / "store").rglob("*") if path.is_file()} == {1}


def test_case_067_holes_stay_holes(workspace: Path, manager: CheckpointManager, home: Path) -> None:
    def write() -> None:
        with (workspace / "s").open("wb") as file:
            file.truncate(SPARSE)
            file.seek(SPARSE // 2)
            file.write(b"x" * 4096)

    write()
    if (workspace / "s").stat().st_blocks * 512 > 2 << 20:
        pytest.skip("this file system has no holes")
    manager.create("one")
    (workspace / "s").unlink()
    manager.rollback("one")
    status = (workspace / "s").stat()
    assert (status.st_size, status.st_blocks * 512 < 2 << 20) == (SPARSE, True)
    with (workspace / "s").open("rb") as file:
        for offset, expected in ((0, b"\0" * 4096), (SPARSE // 2, b"x" * 4096), (SPARSE - 4096, b"\0" * 4096)):
            file.seek(offset)
            assert file.read(4096) == expected
    packs = sum(path.stat().st_size for path in (home / "store" / "packs").iterdir())
    assert packs < 1 << 20


def test_case_068_metadata_is_never_set_through_a_link(
    workspace: Path, manager: CheckpointManager, outside: Path
) -> None:
    (workspace / "l").symlink_to(outside / "f")
    (workspace / "d").symlink_to(outside)
    manager.create("one")
    first, before = snapshot(workspace), (snapshot(outside), inodes(outside))
    for name in ("l", "d"):
        (workspace / name).unlink()
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []
    assert (snapshot(outside), inodes(outside)) == before


@pytest.mark.parametrize("victim", ["an outside file", "a captured file", "a hard link of an outside file"])
def test_case_070_nothing_is_written_through_a_link(
    workspace: Path, manager: CheckpointManager, outside: Path, victim: str
) -> None:
    (workspace / "x").write_text("saved")
    (workspace / "y").write_text("captured too")
    manager.create("one")
    first = snapshot(workspace)
    (workspace / "x").unlink()
    match victim:
        case "an outside file":
            (workspace / "x").symlink_to(outside / "f")
        case "a captured file":
            (workspace / "x").symlink_to("y")
        case _:
            os.link(outside / "f", workspace / "x")
    before = snapshot(outside), account(workspace / "y")
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []
    assert (snapshot(outside), account(workspace / "y")) == before


def test_case_071_a_directory_that_became_a_link_is_a_directory_again(
    workspace: Path, manager: CheckpointManager, outside: Path
) -> None:
    (workspace / "d").mkdir()
    for name in ("f", "g"):
        (workspace / "d" / name).write_text("inside")
    manager.create("one")
    first, before = snapshot(workspace), (snapshot(outside), inodes(outside))
    for paths in (None, ["d"], ["d/f", "d/g"]):
        remove(workspace / "d")
        (workspace / "d").symlink_to(outside)
        assert manager.rollback("one", paths=paths).complete
        assert (snapshot(outside), inodes(outside)) == before
        if paths != ["d/f", "d/g"]:
            assert difference({**first, b".": snapshot(workspace)[b"."]}, snapshot(workspace)) == []
    assert {(workspace / "d" / name).read_text() for name in ("f", "g")} == {"inside"}


@pytest.mark.parametrize("what", ["rollback", "removal", "paths"])
def test_case_071_a_directory_that_keeps_turning_into_a_link_leads_nowhere(
    workspace: Path, outside: Path, what: str
) -> None:
    (workspace / "arena" / "d").mkdir(parents=True)
    for name in ("f", "g"):
        (workspace / "arena" / "d" / name).write_text("one")
    run("checkpoint", "-w", workspace, "one", check=0)
    for number in range(30):
        (outside / f"extra{number}").write_text("outside")
    before = (snapshot(outside), inodes(outside))
    paths = ["--", "arena/d/f", "arena/d"] if what == "paths" else []
    for _ in range(ROUNDS):
        shutil.rmtree(workspace / "arena" / "d")
        (workspace / "arena" / "d").mkdir()
        for name in ("f", "g") if what != "removal" else [f"extra{number}" for number in range(30)]:
            (workspace / "arena" / "d" / name).write_text("two")
        with swapping(workspace / "arena" / "d", outside):
            done = cli.run("rollback", "-w", workspace, "one", *paths)
        assert (snapshot(outside), inodes(outside)) == before
        assert done.status in (0, 1, 3, 13), done.stderr
        assert "Traceback" not in done.stderr
    run("recover", "-w", workspace)
    run("rollback", "-w", workspace, "one", check=0)
    assert {path.read_text() for path in (workspace / "arena" / "d").iterdir()} == {"one"}
    assert sorted(os.listdir(workspace / "arena" / "d")) == ["f", "g"]


def test_case_072_links_out_of_the_tree_are_entries_and_nothing_more(
    workspace: Path, outside: Path, tmp_path: Path, home: Path
) -> None:
    secret = os.urandom(5000)
    (outside / "secret").write_bytes(secret)
    (workspace / "l").symlink_to(outside)
    (tmp_path / "way").symlink_to(workspace)
    made = run("checkpoint", "-w", tmp_path / "way", "one", "--json", check=0).json()
    assert made["workspace"]["path"] == str(workspace)
    again = run("checkpoint", "-w", workspace, "two", "--json", check=0).json()
    assert again["workspace"] == made["workspace"]
    files = run("show", "-w", workspace, "one", "--files", "--json", check=0).json()["files"]
    assert [(entry["path"], entry["type"]) for entry in files if entry["path"]] == [("l", "symlink")]
    assert not [path for path in (home / "store").rglob("*.pack") if secret[:64] in path.read_bytes()]


def full(path: Path) -> None:
    path.mkdir()
    (path / "f").write_text("in a directory")


def nested(path: Path) -> None:
    (path / "in" / "deep").mkdir(parents=True, mode=0o750)
    (path / "in" / "deep" / "f").write_text("deep")
    (path / "in" / "deep").chmod(0o550)
    (path / "g").write_text("g")


KINDS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "absent": ("", lambda path: None),
    "file": ("file", lambda path: path.write_text("file")),
    "empty directory": ("directory", lambda path: path.mkdir(mode=0o711)),
    "full directory": ("directory", full),
    "nested directory": ("directory", nested),
    "link to a file": ("link", lambda path: path.symlink_to("other")),
    "link to a directory": ("link", lambda path: path.symlink_to("somewhere")),
    "pipe": ("pipe", lambda path: os.mkfifo(path, 0o640)),
}
PAIRS = list(itertools.permutations(KINDS, 2))


def change_kind(workspace: Path, store: Path, before: str, after: str) -> None:
    """One kind becomes the other; back and forth again, exact both times; the diff says it with the right letter."""
    workspace.mkdir()
    (workspace / "other").write_text("other")
    (workspace / "somewhere").mkdir()
    place = workspace / "x"
    (old, make_old), (new, make_new) = KINDS[before], KINDS[after]
    with CheckpointManager(workspace, store=store) as manager:
        make_old(place)
        manager.create("one")
        first = snapshot(workspace)
        if place.is_symlink() or not place.is_dir():
            place.unlink(missing_ok=True)
        else:
            remove(place)
        make_new(place)
        manager.create("two")
        second = snapshot(workspace)
        letters = {change.path: change.kind.value for change in manager.diff("one", "two")}
        if old != new:
            assert letters[b"x"] == ("A" if not old else "D" if not new else "T")
        else:
            assert letters.get(b"x", "M") == "M"
        for target, tree in (("one", first), ("two", second)):
            assert manager.rollback(target).complete
            assert difference(tree, snapshot(workspace)) == []


@pytest.fixture(scope="module")
def lasting_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lasting") / "store"


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_case_073_every_kind_becomes_every_other_in_both_directions(
    tmp_path: Path, lasting_store: Path, before: str, after: str
) -> None:
    change_kind(tmp_path / "ws", lasting_store, before, after)


@pytest.mark.parametrize("before", KINDS)
def test_case_073_an_ordinary_user_changes_kinds_as_well(before: str) -> None:
    def act(user: Path) -> None:
        for number, after in enumerate(kind for kind in KINDS if kind != before):
            change_kind(user / f"ws{number}", user / "store", before, after)

    as_ordinary_user(act)


def test_case_075_names_that_differ_in_case_are_two(workspace: Path, manager: CheckpointManager) -> None:
    for name in ("README", "readme", "Foo", "nul", "con.txt", "a:b", "x.", "x"):
        (workspace / name).write_text(name)
    if len(os.listdir(workspace)) != 8:
        pytest.skip("this file system folds names")
    manager.create("one")
    first = snapshot(workspace)
    (workspace / "Foo").rename(workspace / "foo")
    (workspace / "readme").unlink()
    (workspace / "README").write_text("two")
    changed = {change.path: change.kind.value for change in manager.diff("one")}
    assert changed == {b"foo": "R", b"readme": "D", b"README": "M"}
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []


NOT_TEXT = [b"\xfe", b"\xff", b"caf\xe9", b"\\xff", b"\\udcff", "\ufffd".encode(), b"\xed\xb3\xbf", *ODD_NAMES[:4]]


ASCII = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize(("command", "locale"), [(cli.run, ASCII), (run, {})], ids=["ascii", "as it is"])
def test_case_076_bytes_that_are_no_text_are_names_all_the_same(
    workspace: Path, command: Callable[..., cli.Result], locale: dict[str, str]
) -> None:
    names = [*NOT_TEXT, *(b"d\xff/" + name for name in NOT_TEXT)]
    root = os.fsencode(workspace)
    os.mkdir(os.path.join(root, b"d\xff"))

    def write(text: bytes) -> None:
        for name in names:
            Path(os.fsdecode(os.path.join(root, name))).write_bytes(text + name)

    write(b"one ")
    command("checkpoint", "-w", workspace, "one", env=locale, check=0)
    first = snapshot(workspace)
    write(b"two ")
    talk = command("diff", "-w", workspace, "--name-status", env=locale, check=0)
    assert len(set(talk.stdout.splitlines())) == len(set(names))
    changes = command("diff", "-w", workspace, "--json", env=locale, check=0).json()["changes"]
    assert {paths_of(change) for change in changes} == set(names)
    command("rollback", "-w", workspace, "one", "--", b"d\xff/\xfe", b"caf\xe9", cwd=workspace, env=locale, check=0)
    limited = snapshot(workspace)
    same = {name for name in names if limited[name].sha256 == first[name].sha256}
    assert same == {b"d\xff/\xfe", b"caf\xe9"}
    for args in (["show", "--files"], ["rollback", "one"]):
        assert "Traceback" not in command(*args, "-w", workspace, env=locale).stderr
    assert difference(first, snapshot(workspace)) == []


def paths_of(record: dict[str, str]) -> bytes:
    """The bytes of a path in a JSON document."""
    return base64.b64decode(record["path_b64"]) if "path_b64" in record else record["path"].encode()


def test_case_077_forms_of_one_letter_stay_two_names(workspace: Path, manager: CheckpointManager) -> None:
    for number, name in enumerate(("caf\u00e9", "cafe\u0301")):
        (workspace / name).write_text(str(number))
    if len(os.listdir(workspace)) != 2:
        pytest.skip("this file system normalises names")
    manager.create("one")
    first = snapshot(workspace)
    assert manager.create("two", if_changed=True).name == "one"
    (workspace / "caf\u00e9").write_text("two")
    (workspace / "cafe\u0301").unlink()
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []
