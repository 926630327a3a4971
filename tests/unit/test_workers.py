"""Workers: forked copies of a process that do a part of its work."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from support.cli import PATIENCE, environment


def alone(script: str) -> str:
    """What a script prints in a process that has one thread, as that of the tests has not."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_what_a_worker_tells_comes_whole_and_in_order() -> None:
    assert (
        alone("""
        from casnap.fs.workers import at_work
        told = [b"", b"a", bytes(range(256)) * 5000, b"f", b"d"]
        with at_work(lambda tell: [tell(data) for data in told]) as worker:
            print(list(worker.told()) == told)
    """)
        == "True\n"
    )


@pytest.mark.parametrize("kind", ["CasnapError", "Damage", "StorageFailed", "TooNew", "Refused"])
def test_what_a_worker_fails_with_is_raised_here(kind: str) -> None:
    assert (
        alone(f"""
        from casnap import errors
        from casnap.fs.workers import at_work
        failed = errors.{kind}("cannot: why \\udc80", hint="do", code="odd", details={{"a": ["b", 1, None]}})
        def act(tell):
            tell(b"before")
            raise failed
        with at_work(act) as worker:
            told = worker.told()
            print(next(told))
            try:
                next(told)
            except errors.CasnapError as error:
                print(type(error) is type(failed), vars(error) == vars(failed), str(error) == str(failed))
    """)
        == "b'before'\nTrue True True\n"
    )


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "1 / 0", "sys.exit(0)", "os._exit(0)"])
def test_a_worker_that_ends_early_is_lost_however_it_ends(end: str) -> None:
    assert (
        alone(f"""
        import os, signal, sys
        sys.stderr = open(os.devnull, "w")
        from casnap.fs.workers import Lost, at_work
        def act(tell):
            tell(b"before")
            {end}
        with at_work(act) as worker:
            try:
                print(list(worker.told()))
            except Lost:
                print("lost")
    """)
        == "lost\n"
    )


def test_a_worker_is_stopped_with_its_block() -> None:
    assert (
        alone("""
        import os, time
        from casnap.fs.workers import at_work
        def act(tell):
            tell(b"%d" % os.getpid())
            time.sleep(1000)
        try:
            with at_work(act) as worker:
                process = int(next(worker.told()))
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            print(os.path.exists(f"/proc/{process}"))
    """)
        == "False\n"
    )


def test_where_children_are_ignored_a_worker_that_has_ended_is_not_killed_again() -> None:
    assert (
        alone("""
        import os, signal
        from casnap.fs.workers import at_work
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        killed, kill = [], os.kill
        os.kill = lambda *arguments: (killed.append(arguments), kill(*arguments))
        with at_work(lambda tell: tell(b"%d" % os.getpid())) as worker:
            (told,) = worker.told()
            while os.path.exists(f"/proc/{int(told)}"):
                pass
        with at_work(lambda tell: signal.pause()) as worker:
            pass
        print(len(killed))
    """)
        == "1\n"
    )


def test_requests_to_end_are_for_whoever_began_a_worker() -> None:
    assert (
        alone("""
        import os, signal
        from casnap.fs.workers import at_work
        def act(tell):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
                os.kill(os.getpid(), number)
            tell(b"at work")
        with at_work(act) as worker:
            print(list(worker.told()))
    """)
        == "[b'at work']\n"
    )


def test_a_worker_writes_nothing_that_waits_to_be_written_here() -> None:
    assert (
        alone("""
        import sys
        from casnap.fs.workers import at_work
        sys.stdout.write("once ")
        with at_work(lambda tell: None) as worker:
            print(list(worker.told()))
    """)
        == "once []\n"
    )


def test_a_process_with_other_threads_has_no_worker() -> None:
    assert (
        alone("""
        import threading
        from casnap.fs.workers import at_work
        done = threading.Event()
        threading.Thread(target=done.wait).start()
        with at_work(lambda tell: None) as worker:
            print(worker)
        done.set()
    """)
        == "None\n"
    )


def test_where_no_process_can_be_forked_there_is_no_worker() -> None:
    assert (
        alone("""
        import os
        from casnap.fs.workers import at_work
        def fork():
            raise BlockingIOError(11, "Resource temporarily unavailable")
        os.fork = fork
        before = os.listdir("/proc/self/fd")
        with at_work(lambda tell: None) as worker:
            print(worker, len(os.listdir("/proc/self/fd")) - len(before))
    """)
        == "None 0\n"
    )


@pytest.mark.parametrize("free", [0, 1, 2])
def test_where_no_more_files_can_be_opened_there_is_no_worker(free: int) -> None:
    assert (
        alone(f"""
        import os, resource
        from casnap.fs.workers import at_work
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        for fd in range(3, 64 - {free}):
            os.dup2(0, fd)
        with at_work(lambda tell: None) as worker:
            print(worker is None)
    """)
        == f"{free < 2}\n"
    )


def test_a_worker_that_nobody_is_left_to_hear_ends_though_the_pipe_is_full(tmp_path: Path) -> None:
    script = """
        import os, signal, sys
        from casnap.fs.workers import at_work
        def act(tell):
            print(os.getpid(), file=open(sys.argv[1], "w"), flush=True)
            while True:
                tell(bytes(4096))
        with at_work(act) as worker:
            worker._pipe.raw.readinto(bytearray(1))  # it tells something
            signal.sigtimedwait([], 0.3)  # till it waits
            os.kill(os.getpid(), signal.SIGKILL)
    """
    told = tmp_path / "pid"
    subprocess.run([sys.executable, "-c", textwrap.dedent(script), told], env=environment(), check=False)
    process = Path("/proc", told.read_text().strip())
    until = time.monotonic() + PATIENCE
    while process.exists() and "State:\tZ" not in _status(process) and time.monotonic() < until:
        time.sleep(0.01)
    assert "State:\tS" not in _status(process)


def _status(process: Path) -> str:
    try:
        return (process / "status").read_text()
    except OSError:
        return ""


def test_a_worker_has_locked_roots_and_a_process_that_goes_its_own_way_has_not(tmp_path: Path) -> None:
    assert (
        alone(f"""
        import os
        from casnap.fs.directories import Directories
        from casnap.fs.workers import at_work
        with Directories({bytes(tmp_path)!r}) as directories:
            assert directories.lock(0)
            def act(tell):
                tell(b"%d" % (directories.root_fd >= 0))
            with at_work(act) as worker:
                print(list(worker.told()))
            if os.fork() == 0:
                os._exit(directories.root_fd >= 0)
            print(os.wait()[1])
    """)
        == "[b'1']\n0\n"
    )
