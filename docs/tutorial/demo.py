"""``make demo``: protect a copy of a real directory tree, break it as an agent would, put it back, prove it.

The tree is this Python's standard library with a small database added. Everything happens in a temporary
directory, the store included. Ends with status 0 only if every step did what it should.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import sqlite3
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

SHOWN_LINES = 12
"""Lines of a command's output that are shown; the middle of a longer one is left out."""


def main() -> None:
    """Run the demonstration."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="casnap-demo-", ignore_cleanup_errors=True) as scratch:
        project = Path(scratch) / "project"
        casnap = Casnap(project, store=Path(scratch) / "store")
        make_project(project)
        good = fingerprint(project)
        files = sum(len(names) for _, _, names in os.walk(project))
        say(f"A copy of a real tree: {files} files. Keep a checkpoint of it.")
        casnap("checkpoint", "before-the-agent", "-m", "all tests pass")

        say("An agent goes wrong: edits, deletions, junk, chmod, a wiped database.")
        break_project(project)
        broken = fingerprint(project)
        casnap("status")
        casnap("diff", "--stat")

        say("Put it back, and prove it: verify compares every path and every byte.")
        casnap("rollback", "--yes")
        casnap("verify")
        prove(fingerprint(project) == good, "the tree is what it was, byte for byte (compared without casnap)")

        say("Nothing is lost by a rollback: undo brings the agent's state back, a second undo leaves it again.")
        casnap("undo", "--yes")
        prove(fingerprint(project) == broken, "the agent's files are back, those that no checkpoint held too")
        casnap("undo", "--yes")
        casnap("verify")
        prove(fingerprint(project) == good, "and the good state again")
        casnap("list", "--safety")
    say(f"Done in {time.monotonic() - began:.1f} s; the temporary directory is gone.")


class Casnap:
    """Runs casnap in a directory, with a store of its own, and shows each command and what it says."""

    def __init__(self, directory: Path, store: Path) -> None:
        self._directory = directory
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CASNAP_")}
        self._environment = inherited | {"CASNAP_STORE": str(store), "CASNAP_NO_INPUT": "1"}

    def __call__(self, *words: str) -> None:
        """Run it; anything but success ends the demonstration."""
        print(f"\n$ {shlex.join(('casnap', *words))}", flush=True)
        done = subprocess.run(
            [sys.executable, "-P", "-m", "casnap", *words],  # -P: import nothing from the tree that gets broken
            cwd=self._directory,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="backslashreplace",
            check=False,
        )
        lines = done.stdout.splitlines()
        if len(lines) > SHOWN_LINES:
            half = SHOWN_LINES // 2
            lines[half:-half] = [f"  ... {len(lines) - 2 * half} more lines ..."]
        print("\n".join(lines))
        if done.returncode != 0:
            sys.exit(f"error: the demonstration failed: casnap {words[0]} ended with status {done.returncode}")


def make_project(project: Path) -> None:
    """A copy of the standard library, and a database."""
    shutil.copytree(
        sysconfig.get_path("stdlib"),
        project,
        symlinks=True,
        ignore=shutil.ignore_patterns("site-packages", "dist-packages", "__pycache__", "config-*"),
    )
    with contextlib.closing(sqlite3.connect(project / "orders.db")) as database, database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER)")
        rows = [(f"customer {number % 40}", number * 37 % 9_000) for number in range(5_000)]
        database.executemany("INSERT INTO orders (customer, cents) VALUES (?, ?)", rows)


def break_project(project: Path) -> None:
    """What an agent that has lost its way does to a tree."""
    for path in sorted(project.glob("*.py"))[:25]:
        path.write_text(
            path.read_text("utf-8", "surrogateescape").replace("def ", "async def "), "utf-8", "surrogateescape"
        )
    shutil.rmtree(project / "json")
    shutil.rmtree(project / "email")
    (project / "json").write_text("# TODO: rewrite in one file\n")
    for number in range(30):
        (project / f"fix_attempt_{number}.py").write_text(f"print('attempt {number}')\n")
    for path in project.rglob("*.txt"):
        path.chmod(0o777)
    (project / "LATEST").symlink_to("fix_attempt_29.py")
    with contextlib.closing(sqlite3.connect(project / "orders.db")) as database, database:
        database.execute("DELETE FROM orders")


def fingerprint(project: Path) -> str:
    """One SHA-256 over names, kinds, permissions, times and bytes, made without casnap."""
    total = hashlib.sha256()
    for directory, names, files in os.walk(project):
        names.sort()
        for path in [Path(directory), *(Path(directory, name) for name in sorted(names + files))]:
            status = path.lstat()
            facts = [os.fsencode(path), str(stat.S_IFMT(status.st_mode) | stat.S_IMODE(status.st_mode)).encode()]
            facts.append(str(status.st_mtime_ns).encode())
            if path.is_symlink():
                facts.append(os.fsencode(path.readlink()))
            elif stat.S_ISREG(status.st_mode):
                facts.append(hashlib.sha256(path.read_bytes()).digest())
            total.update(b"\0".join(facts) + b"\n")
    return total.hexdigest()


def say(text: str) -> None:
    """A line of explanation."""
    print(f"\n# {text}", flush=True)


def prove(truth: bool, what: str) -> None:
    """Say that ``what`` holds, or end the demonstration with status 1."""
    if not truth:
        sys.exit(f"error: the demonstration failed: it is not so that {what}")
    print(f"ok: {what}", flush=True)


if __name__ == "__main__":
    main()
