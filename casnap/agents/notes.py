"""What hooks remember of each directory from one call to the next, and what ``casnap status`` tells of them.

A small file for each directory, outside of the store: what went wrong with a store must not be written into it. It may
vanish at any time; then a turn is perhaps looked at once more often.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from casnap.codec.hashing import checksum
from casnap.errors import CasnapError
from casnap.fs import durable
from casnap.fs.locks import hold
from casnap.model.paths import escape

MOST_SESSIONS = 16
"""Sessions that are remembered of one directory."""

KEPT = 30 * 86400 * 10**9
"""Nanoseconds after which what is remembered of a directory is forgotten."""

LONGEST_SAID = 300
"""Characters that a person is asked to read of a message or a path."""

_NAME = "hooks"
_SUFFIX = ".json"


class Fired(Struct, frozen=True, omit_defaults=True):
    """The newest event of an agent; ``time`` in nanoseconds since the epoch."""

    time: int
    moment: str
    tool: str = ""


class Turn(Struct, frozen=True, omit_defaults=True):
    """Where a session is: its turn by the agent's name for it, how many there were, and what is done with it."""

    id: str = ""
    number: int = 0
    begun: bool = False
    covered: bool = False


class Failure(Struct, frozen=True, omit_defaults=True):
    """Why a hook took no checkpoint; ``refused``: by a rule, and it would not take one the next time either."""

    time: int
    agent: str
    message: str
    hint: str = ""
    refused: bool = False


def shortened(text: str) -> str:
    """``text`` for a person: of a long one the beginning and the end, where a message has its cause."""
    half = (LONGEST_SAID - len(" … ")) // 2
    return text if len(text) <= LONGEST_SAID else f"{text[:half]} … {text[-half:]}"


class Notes(Struct, frozen=True, omit_defaults=True):
    """What is remembered of a ``directory``; an empty one stands for what went wrong before any was known.

    Paths are printable text, as :func:`casnap.model.paths.escape` makes it: a name may be no text.
    ``looked`` is when the newest scan began that was seen through, in nanoseconds of the monotonic clock of ``boot``;
    ``begun`` when (since the epoch) one began that has not ended yet, ``succeeded`` when one ended well. ``failure`` is
    what went wrong since.
    """

    directory: str
    store: str
    written: int = 0
    workspace: str = ""
    agents: dict[str, Fired] = field(default_factory=dict)
    sessions: dict[str, Turn] = field(default_factory=dict)
    boot: str = ""
    looked: int = 0
    begun: int = 0
    succeeded: int = 0
    failure: Failure | None = None

    def turn_of(self, agent: str, session: str) -> Turn:
        """Where a session of an agent is: another agent may have one of the same name."""
        return self.sessions.get(_name_of(agent, session), Turn())

    def with_turn(self, agent: str, session: str, turn: Turn) -> Notes:
        """The same with another turn of a session, the newest sessions kept."""
        name = _name_of(agent, session)
        others = {other: known for other, known in self.sessions.items() if other != name}
        kept = dict(list(others.items())[-(MOST_SESSIONS - 1) :])
        return replace(self, sessions={**kept, name: turn})

    def saw_since(self, arrived: int, boot: str) -> bool:
        """Whether a scan that began at or after ``arrived`` (monotonic nanoseconds) has been seen through."""
        return bool(boot) and self.boot == boot and self.looked >= arrived and self.failure is None


def _name_of(agent: str, session: str) -> str:
    """The name of a session among those of all agents; that of an agent, which may be an argument, holds no NUL."""
    return f"{agent}\0{session}"


_decoder = msgspec.json.Decoder(Notes)


class Notebook:
    """The notes of all directories that are kept with one store, at the first place that can be written.

    What is at the others is read too: a home directory may have been writable before.
    """

    def __init__(self, candidates: tuple[Path, ...], store: Path) -> None:
        self._candidates = candidates
        self._store = escape(os.fsencode(store))

    def read(self, directory: str) -> Notes:
        """What is remembered of a directory."""
        key = self._key(directory)
        found = [notes for place in self._usable() if (notes := _read(place / key)) is not None]
        return max(found, key=lambda notes: notes.written, default=Notes(directory, self._store))

    def write(self, notes: Notes) -> bool:
        """Remember; whether there was a place for it."""
        data = msgspec.json.encode(notes)
        for place in self._candidates:
            with contextlib.suppress(CasnapError, OSError):
                _make_own(place)
                durable.write_whole(place / self._key(notes.directory), data, durable=False)
                return True
        return False

    def all(self) -> list[Notes]:
        """Everything that is remembered with this store, the newest first."""
        newest: dict[str, Notes] = {}
        for place in self._usable():
            for path in sorted(place.glob(f"*{_SUFFIX}")):
                notes = _read(path)
                if notes is not None and notes.store == self._store:
                    known = newest.get(notes.directory)
                    if known is None or known.written < notes.written:
                        newest[notes.directory] = notes
        return sorted(newest.values(), key=lambda notes: -notes.written)

    @contextlib.contextmanager
    def locked(self, directory: str, wait: float, unless: Callable[[], bool] = lambda: False) -> Iterator[bool]:
        """Keep other hooks of a directory waiting; whether they are, within ``wait`` seconds.

        ``unless`` is asked now and then while another one is at work, and makes an end of waiting. Who is forked within
        keeps others waiting until it ends. Where there is no place for a lock, nobody waits.
        """
        fd = self._lock(directory, wait, unless)
        try:
            yield fd is not None
        finally:
            if fd is not None and fd >= 0:
                os.close(fd)

    def _lock(self, directory: str, wait: float, unless: Callable[[], bool]) -> int | None:
        name = self._key(directory).removesuffix(_SUFFIX) + ".lock"
        for place in self._candidates:
            with contextlib.suppress(CasnapError, OSError):
                _make_own(place)
                return hold(place / name, wait, unless)
        return -1

    def is_busy(self, directory: str) -> bool:
        """Whether a hook works on a directory now."""
        with self.locked(directory, 0) as free:
            return not free

    def forget_old(self, now: int) -> None:
        """Take away what nobody has asked for in a long time; ``now`` in nanoseconds since the epoch."""
        for place in self._usable():
            for path in place.iterdir():
                with contextlib.suppress(OSError):
                    if path.suffix in (_SUFFIX, ".tmp") and path.stat().st_mtime_ns < now - KEPT:
                        durable.remove(path)

    def _key(self, directory: str) -> str:
        return checksum(f"{self._store}\0{directory}".encode()).hex() + _SUFFIX

    def _usable(self) -> list[Path]:
        return [place for place in self._candidates if _is_own(place)]


def notebook(environ: Mapping[str, str], home: bytes | None, store: Path) -> Notebook:
    """The notebook of a store: in the user's state, else where a user has room that is gone after a restart."""
    user = os.geteuid()
    places: list[Path] = []
    if os.path.isabs(state := environ.get("XDG_STATE_HOME", "")):
        places.append(Path(state) / "casnap")
    elif home is not None:
        places.append(Path(os.fsdecode(home)) / ".local" / "state" / "casnap")
    if os.path.isabs(runtime := environ.get("XDG_RUNTIME_DIR", "")):
        places.append(Path(runtime) / "casnap")
    places += [Path(shared) / f"casnap-{user}" for shared in ("/dev/shm", "/tmp", "/var/tmp")]
    return Notebook(tuple(place / _NAME for place in places), store)


def _make_own(place: Path) -> None:
    for path in (place.parent, place):  # nothing is made in what is somebody else's
        durable.make_directory(path)
        if not _is_ours_alone(path):
            raise PermissionError(f"others may write in {path}")


def _is_own(place: Path) -> bool:
    """Whether a directory, and the one that it is in, are ours alone to write: others may have made it before us."""
    return _is_ours_alone(place.parent) and _is_ours_alone(place)


def _is_ours_alone(path: Path) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _read(path: Path) -> Notes | None:
    try:
        return _decoder.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return None
