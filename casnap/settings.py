"""Where the outside world comes in: environment, home, identity and clock are read here and nowhere else.

The command line and :mod:`casnap.manager` both go through here, so that the same words mean the same store
and the same workspace to both (docs/reference/environment.md).
"""

from __future__ import annotations

import fnmatch
import math
import os
import pwd
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from casnap.engine.context import Context
from casnap.engine.workspaces import all_workspaces, canonical, enclosing, find, register, require_place
from casnap.errors import NoStore, NotFound, Usage
from casnap.model.checkpoint import Origin
from casnap.model.clock import Progress, Silent
from casnap.model.paths import escape, is_within
from casnap.model.policy import DEFAULT_COMPRESSION, DEFAULT_WAIT, Policy, Selection
from casnap.model.report import WorkspaceInfo
from casnap.store.store import Store

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]

ROOT_STORE = Path("/var/lib/casnap")
"""Where root's store is."""

LEVELS = range(1, 20)
"""Compression levels that zstd can undo within the memory that readers grant."""

_SIZE = re.compile(r"(?P<number>\d{1,15})(?P<unit>[KMGT]?)", re.IGNORECASE | re.ASCII)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


_AGENTS = (("CLAUDECODE", "claude-code"), ("GEMINI_CLI", "gemini"), ("CODEX_*", "codex"), ("OPENCODE*", "opencode"))
"""What each agent sets in the environment of its commands."""

_UNATTENDED = ("CASNAP_NO_INPUT", "CI")


class SystemClock:
    """The wall clock of this machine."""

    def now(self) -> int:
        """Nanoseconds since the epoch."""
        return time.time_ns()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment and the options come to.

    ``explicit`` says that the store was named by option or argument rather than found by default or
    environment. ``workspace`` is what CASNAP_WORKSPACE holds, ``cwd`` the current directory (None where it
    cannot be told), ``home`` the home directory, links resolved.
    """

    environ: Mapping[str, str]
    store: Path
    explicit: bool
    workspace: str | None
    cwd: bytes | None
    home: bytes | None
    policy: Policy
    origin: Origin
    boot: str


def load_settings(
    environ: Mapping[str, str] | None = None,
    *,
    store: str | os.PathLike[str] | None = None,
    wait: float | None = None,
) -> Settings:
    """Read the environment (this process's when None); ``store`` and ``wait`` (seconds) come from options.

    Raises:
        Usage: a variable or an option holds what it cannot hold; the message names it.
    """
    environ = os.environ if environ is None else environ
    home = _home(environ)
    return Settings(
        environ=environ,
        store=_store_path(environ, home, store),
        explicit=store is not None,
        workspace=environ.get("CASNAP_WORKSPACE") or None,
        cwd=_current_directory(environ),
        home=None if home is None else canonical(os.fsencode(home)),
        policy=Policy(
            min_free=_size(environ, "CASNAP_MIN_FREE"),
            compression=_level(environ, "CASNAP_COMPRESSION"),
            wait=_wait(wait),
            selection=Selection(
                exclude=os.fsencode(environ.get("CASNAP_EXCLUDE", "")),
                use_gitignore=_truth(environ, "CASNAP_USE_GITIGNORE", default=False),
                exclude_caches=_truth(environ, "CASNAP_EXCLUDE_CACHES", default=True),
                max_file_size=_size(environ, "CASNAP_MAX_FILE_SIZE"),
            ),
            sqlite_consistent=_truth(environ, "CASNAP_SQLITE_CONSISTENT", default=False),
        ),
        origin=_origin(environ),
        boot=_boot(),
    )


def open_context(settings: Settings, *, create: bool = False, progress: Progress | None = None) -> Context:
    """Open the store, or with ``create`` make it where there is none.

    Raises:
        NoStore: there is none, and none is to be made.
    """
    clock, policy = SystemClock(), settings.policy
    try:
        store = Store.open(settings.store, clock=clock, policy=policy, explicit=settings.explicit)
    except NoStore:
        if not create:
            raise
        store = Store.create(settings.store, clock=clock, policy=policy)
    return Context(store, policy, clock, settings.origin, settings.boot, progress or Silent())


@dataclass(frozen=True, slots=True)
class Protected:
    """A workspace that is registered by now, whether it was before, and what there is to say about it."""

    context: Context
    workspace: WorkspaceInfo
    new: bool
    notes: tuple[str, ...]


def protect(
    settings: Settings,
    given: str | None,
    *,
    context: Context | None = None,
    allow_home: bool = False,
    progress: Progress | None = None,
) -> Protected:
    """Register the workspace that ``init`` or ``checkpoint`` is about; nothing is written for a forbidden one.

    ``context`` is the store where it is open already.

    Raises:
        Usage: there is no such directory.
        Refused: it is one that must not be a workspace.
    """
    try:
        context = context or open_context(settings, progress=progress)
        path = _place_to_protect(settings, given, context)
    except NoStore:
        path = _place_to_protect(settings, given, None)
        # register asks this too; here it keeps a refusal from making a store
        require_place(canonical(path), store=os.fsencode(settings.store), home=settings.home, allow_home=allow_home)
        context = open_context(settings, create=True, progress=progress)
    workspace, new, notes = register(context, path, home=settings.home, allow_home=allow_home)
    return Protected(context, workspace, new, notes)


def resolve_workspace(settings: Settings, context: Context, given: str | None) -> WorkspaceInfo:
    """The registered workspace that a verb is about: the one given exactly, else the one around here.

    Raises:
        NotFound: none is registered there.
    """
    if (exact := given if given is not None else settings.workspace) is not None:
        return find(context, _place(settings, exact))
    here = _here(settings)
    if (workspace := enclosing(context, here)) is None:
        raise NotFound(
            f"no workspace here: {escape(here)} is in none that is registered",
            code="no-workspace",
            hint="register one with `casnap init`, or name one with -w DIR",
        )
    return workspace


def workspaces_in_view(
    settings: Settings, context: Context, given: str | None
) -> tuple[WorkspaceInfo, ...] | WorkspaceInfo:
    """What a verb shows that is about all workspaces when it is not within one.

    Raises:
        NotFound: the workspace that was named is not registered.
    """
    if given is not None or settings.workspace is not None:
        return resolve_workspace(settings, context, given)
    within = None if settings.cwd is None else enclosing(context, settings.cwd)
    return within or tuple(all_workspaces(context))


def paths_within(
    settings: Settings, workspace: WorkspaceInfo, given: Iterable[AnyPath], *, exact: bool
) -> tuple[bytes, ...]:
    """Paths as somebody names them, as paths relative to the workspace; they need not exist.

    They are relative to the workspace when that was named exactly, else to the current directory.
    A link inside the workspace is an entry of it and not followed; links that lead to it are.

    Raises:
        Usage: a path is empty or lies outside the workspace.
    """
    root = workspace_path(workspace)
    return tuple(_path_within(root, root if exact else _here(settings), os.fsencode(path)) for path in given)


def workspace_path(workspace: WorkspaceInfo) -> bytes:
    """The workspace's directory."""
    return os.fsencode(workspace.path)


def may_ask(environ: Mapping[str, str], stdin: IO[str] | None, stderr: IO[str] | None) -> bool:
    """Whether a person is there to be asked: at a terminal, and no sign of a script or an agent."""
    if any(environ.get(name) for name in _UNATTENDED) or _agent(environ):
        return False
    return all(stream is not None and not stream.closed and stream.isatty() for stream in (stdin, stderr))


def wants_plain(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for text without colour and control codes."""
    return bool(environ.get("NO_COLOR")) or environ.get("TERM", "dumb") == "dumb"


def _place_to_protect(settings: Settings, given: str | None, context: Context | None) -> bytes:
    if (exact := given if given is not None else settings.workspace) is not None:
        return _place(settings, exact)
    here = _here(settings)
    if context is not None and (workspace := enclosing(context, here)) is not None:
        return workspace_path(workspace)
    return _git_work_tree(here) or here


def _git_work_tree(directory: bytes) -> bytes | None:
    """The nearest directory at or above that has a ``.git``: a directory, or in linked work trees a file."""
    while not os.path.lexists(os.path.join(directory, b".git")):
        if directory == (parent := os.path.dirname(directory)):
            return None
        directory = parent
    return directory


def _place(settings: Settings, given: str) -> bytes:
    if not given:
        raise Usage("no workspace: its name is empty", hint="name a directory")
    path = os.fsencode(given)
    return path if os.path.isabs(path) else os.path.join(_here(settings), path)


def _here(settings: Settings) -> bytes:
    if settings.cwd is None:
        raise Usage("cannot tell the current directory: it was removed", hint="name the workspace with -w DIR")
    return settings.cwd


def _path_within(root: bytes, base: bytes, given: bytes) -> bytes:
    if not given:
        raise Usage("bad path '': it is empty", code="bad-path")
    if b"\0" in given:
        raise Usage(f"bad path {escape(given)!r}: it holds a NUL", code="bad-path")
    path = os.path.normpath(os.path.join(base, given))
    if path.startswith(b"//"):  # POSIX lets two slashes mean something else; Linux does not
        path = path[1:]
    if (inside := _below(path, root)) is not None:
        return inside
    parts = path.split(b"/")
    for end in range(2, len(parts) + 1):  # a link outside that leads here: the outermost one counts
        reached = _below(os.path.realpath(b"/".join(parts[:end])), root)
        if reached is not None:
            return b"/".join(part for part in (reached, *parts[end:]) if part)
    raise Usage(
        f"bad path {escape(given)}: it lies outside the workspace {escape(root)}",
        code="bad-path",
        hint="name paths inside the workspace",
    )


def _below(path: bytes, root: bytes) -> bytes | None:
    """``path`` relative to ``root``; None when it is not within."""
    return path[len(root) :].lstrip(b"/") if is_within(path, root) else None


def _current_directory(environ: Mapping[str, str]) -> bytes | None:
    """A removed directory is still where the shell says that it is: the way back to a lost workspace."""
    try:
        return os.getcwdb()
    except FileNotFoundError:
        said = environ.get("PWD", "")
        return canonical(os.fsencode(said)) if os.path.isabs(said) else None


def _home(environ: Mapping[str, str]) -> str | None:
    if os.path.isabs(home := environ.get("HOME", "")):
        return home
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return None


def _store_path(environ: Mapping[str, str], home: str | None, given: str | os.PathLike[str] | None) -> Path:
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


def _size(environ: Mapping[str, str], key: str) -> int | None:
    if not (text := environ.get(key)):
        return None
    if (match := _SIZE.fullmatch(text)) is None:
        raise Usage(f"bad {key} {text!r}: not a size", hint="write bytes, or a number with K, M, G or T")
    return int(match["number"]) * _UNITS[match["unit"].upper()]


def _truth(environ: Mapping[str, str], key: str, *, default: bool) -> bool:
    text = environ.get(key, "").lower()
    if text and text not in _TRUE | _FALSE:
        raise Usage(f"bad {key} {text!r}: neither true nor false", hint="write true or false")
    return text in _TRUE if text else default


def _level(environ: Mapping[str, str], key: str) -> int:
    if not (text := environ.get(key)):
        return DEFAULT_COMPRESSION
    if not re.fullmatch(r"\d{1,2}", text, re.ASCII) or int(text) not in LEVELS:
        raise Usage(f"bad {key} {text!r}: not a compression level", hint=f"write {LEVELS[0]} to {LEVELS[-1]}")
    return int(text)


def _wait(seconds: float | None) -> float:
    if seconds is None:
        return DEFAULT_WAIT
    if not math.isfinite(seconds) or seconds < 0:
        raise Usage(f"bad wait {seconds}: not a number of seconds", hint="write --wait 30")
    return seconds


def _origin(environ: Mapping[str, str]) -> Origin:
    return Origin(user=_user(), host=os.uname().nodename, process=str(os.getpid()), agent=_agent(environ))


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _agent(environ: Mapping[str, str]) -> str:
    names = [name for name, value in environ.items() if value]
    return next((agent for sign, agent in _AGENTS if fnmatch.filter(names, sign)), "")


def _boot() -> str:
    """This boot of the kernel; empty where it has no name, and then nothing is believed across a process."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
