"""A command that is stopped from outside says so, with the status that shells expect."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli import Result, environment, run

Call = Callable[..., Result]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_command_that_waits(
    protected: Path, home: Path, call: Call, number: signal.Signals, status: int
) -> None:
    workspace_id = call("status", "--json", cwd=protected, check=0).json()["workspace"]["id"]
    with open(home / "store" / "locks" / f"workspace-{workspace_id}.lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = subprocess.Popen(
            [sys.executable, "-m", "casnap", "checkpoint", "--wait", "600", "--json"],
            cwd=protected,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == f"workspace {protected}\n"
        waiting.send_signal(number)
        stdout, stderr = waiting.communicate(timeout=120)
    assert waiting.returncode == status
    assert stderr.startswith("error: stopped: ")
    assert json.loads(stdout)["exit"] == status
    assert [one["name"] for one in call("list", "--format", "json", cwd=protected, check=0).json()] == ["c1"]


def test_an_automatic_gc_can_be_ended_although_who_began_it_could_not_be(tmp_path: Path) -> None:
    """The command that begins one lets signals wait for its own report."""
    program = """
import gc as garbage, importlib, signal, sys
import casnap.cli
from casnap.store.signals import DEFERRED
gc = importlib.import_module("casnap.cli.gc")
casnap.cli.gc = garbage  # what begins the program means that one
signal.pthread_sigmask(signal.SIG_BLOCK, DEFERRED)
def collect(*arguments, **named):
    print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()) & DEFERRED))
    sys.exit(0)
gc.collect = collect
from casnap.cli import main
main()
"""
    run("checkpoint", cwd=tmp_path, check=0)
    for words, blocked in ((["gc", "--automatic"], b"[]\n"), (["gc"], None)):
        command = [sys.executable, "-P", "-c", program, *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, check=False)
        assert (done.stdout == b"[]\n") == (blocked is not None)


STOPPED = """
import sys

class Stop:
    def __set_name__(self, *_):
        raise KeyboardInterrupt

class Finder:
    def find_spec(self, name, *_):
        if name == asked:
            type("Made", (), {"member": Stop()})

asked = sys.argv.pop(1)
sys.meta_path.insert(0, Finder())
import casnap.cli
sys.exit(casnap.cli.main())
"""
"""An interruption while a class is made in a module that is imported: a RuntimeError before Python 3.12."""


@pytest.mark.parametrize(
    "module", ["casnap.cli.foreign", "casnap.cli.running", "casnap.cli.undo", "casnap.engine.undo"]
)
@pytest.mark.parametrize("asked", ["", "bash_complete"])
def test_an_interruption_while_modules_are_imported_is_no_failure(tmp_path: Path, module: str, asked: str) -> None:
    env = environment({"_CASNAP_COMPLETE": asked, "COMP_WORDS": "casnap undo --", "COMP_CWORD": "2"})
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, module, "undo"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    late = not asked and module not in ("casnap.cli.foreign", "casnap.cli.running")
    assert done.returncode in ((130, 0) if asked else (130,))
    assert done.stderr.startswith("error: stopped: interrupted\n") if late else done.stderr == ""
