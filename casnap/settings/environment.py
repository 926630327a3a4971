"""What a process finds around itself: environment variables, home, identity, clock and current directory."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from casnap.errors import Usage
from casnap.fs.paths import canonical
from casnap.model.checkpoint import Origin
from casnap.model.policy import DEFAULT_WAIT

ROOT_STORE = Path("/var/lib/casnap")
"""Where root's store is."""

_AGENTS = (("CLAUDECODE", "claude-code"), ("GEMINI_CLI", "gemini"), ("CODEX_*", "codex"), ("OPENCODE*", "opencode"))
"""What each agent sets in the environment of its commands; a star at the end stands for anything."""

_UNATTENDED = ("CASNAP_NO_INPUT", "CI")

DEFAULT_PAGER = "less -FRX"
"""Ends by itself when all fits on the screen, passes colours on, and leaves what was shown in sight."""


class SystemClock:
    """The wall clock of this machine."""

    def now(self) -> int:
        """Nanoseconds since the epoch."""
        return time.time_ns()

    def monotonic(self) -> int:
        """Nanoseconds since some instant, the same for all processes until the next boot; never set back."""
        return time.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def may_ask(environ: Mapping[str, str], stdin: IO[str] | None, stderr: IO[str] | None) -> bool:
    """Whether a person is there to be asked: at a terminal, and no sign of a script or an agent."""
    if any(environ.get(name) for name in _UNATTENDED) or _agent(environ):
        return False
    return all(stream is not None and not stream.closed and stream.isatty() for stream in (stdin, stderr))


def wants_plain(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for text without colour and control codes."""
    return bool(environ.get("NO_COLOR")) or environ.get("TERM", "dumb") == "dumb"


def pager_command(environ: Mapping[str, str]) -> str | None:
    """The command that long output is shown through on a terminal; None for none."""
    command = environ.get("CASNAP_PAGER", environ.get("PAGER", DEFAULT_PAGER))
    return None if command in ("", "cat") or environ.get("TERM", "dumb") == "dumb" else command


def current_directory(environ: Mapping[str, str]) -> bytes | None:
    """A removed directory is still where the shell says that it is: the way back to a lost workspace."""
    try:
        return os.getcwdb()
    except FileNotFoundError:
        said = environ.get("PWD", "")
        return canonical(os.fsencode(said)) if os.path.isabs(said) else None


def home_of(environ: Mapping[str, str]) -> str | None:
    """The home directory; None where neither environment nor account names one."""
    if os.path.isabs(home := environ.get("HOME", "")):
        return home
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return None


def temporary_roots(environ: Mapping[str, str]) -> frozenset[bytes]:
    """The directories in which everybody makes temporary ones, links resolved."""
    named = environ.get("TMPDIR", "")
    return frozenset(canonical(path) for path in ("/tmp", "/var/tmp", named) if path)


def store_path(environ: Mapping[str, str], home: str | None, given: str | os.PathLike[str] | None) -> Path:
    """Where the store is; ``given`` comes from an option.

    Raises:
        Usage: the option is empty, or there is no place for a store.
    """
    if given is not None:
        if not os.fspath(given):
            raise Usage("no store: --store is empty", hint="name a directory")
        return Path(os.path.abspath(given))
    if named := environ.get("CASNAP_STORE"):
        return Path(os.path.abspath(named))
    if os.geteuid() == 0:
        return ROOT_STORE
    if os.path.isabs(data := environ.get("XDG_DATA_HOME", "")):  # a relative one is to be ignored, says XDG
        return Path(data) / "casnap"
    if home is None:
        raise Usage("no place for a store: this user has no home", hint="name one with --store DIR or CASNAP_STORE")
    return Path(home) / ".local" / "share" / "casnap"


def bounded_wait(seconds: float | None) -> float:
    """How long to wait for a lock, in seconds; None for the default.

    Raises:
        Usage: that is no number, or less than nothing.
    """
    if seconds is None:
        return DEFAULT_WAIT
    if not 0 <= seconds < float("inf"):
        raise Usage(f"bad wait {seconds}: not a number of seconds", hint="write --wait 30")
    return seconds


def origin_of(environ: Mapping[str, str]) -> Origin:
    """Who asks: user, host, process and agent."""
    return Origin(user=_user(), host=os.uname().nodename, process=str(os.getpid()), agent=_agent(environ))


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _agent(environ: Mapping[str, str]) -> str:
    names = [name for name, value in environ.items() if value]
    return next((agent for sign, agent in _AGENTS if any(_is_sign(name, sign) for name in names)), "")


def _is_sign(name: str, sign: str) -> bool:
    return name.startswith(sign[:-1]) if sign.endswith("*") else name == sign


def processors() -> int:
    """How many processors this process may use; 1 where that cannot be told."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # only Linux tells
        return 1


def boot_id() -> str:
    """This boot of the kernel; empty where it has no name, and then nothing is believed across a process."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().decode("ascii").strip()
    except OSError:
        return ""
