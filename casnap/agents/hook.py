"""What a hook does: it sees to one event of an agent, within the time that the agent has for it."""

from __future__ import annotations

import contextlib
import os

from msgspec import Struct
from msgspec.structs import replace

from casnap.agents import turns
from casnap.agents.event import Event, Moment
from casnap.agents.notes import Failure, Fired, Notebook, Notes, Turn, shortened
from casnap.errors import CasnapError, interruption_in
from casnap.model.paths import escape, unescape
from casnap.settings import Settings, SystemClock, Vanished, apart

SECOND = 10**9

SELDOM = 60 * SECOND
"""Nanoseconds between two notes of events that ask for nothing."""

PATIENCE = 60.0
"""Seconds for which a process that nobody waits for waits for others."""


class Missed(Struct, frozen=True):
    """Why there is no checkpoint of the first directory that an event is about, where one was due."""

    message: str
    hint: str = ""


class Hook:
    """One call: ``arrived`` is when it began, in nanoseconds of the monotonic clock."""

    def __init__(self, settings: Settings, book: Notebook, arrived: int, *, clock: SystemClock) -> None:
        self.settings = settings
        self.book = book
        self.arrived = arrived
        self.clock = clock
        self._values = {setting.key: setting.value for setting in settings.effective()}

    @property
    def deadline(self) -> int:
        """When the agent goes on, in nanoseconds of the monotonic clock."""
        seconds = self._values["hook.deadline"]
        return self.arrived + (seconds if isinstance(seconds, int) else 0) * SECOND

    @property
    def _left(self) -> float:
        """Seconds until then."""
        return max(0.0, (self.deadline - self.clock.monotonic()) / SECOND)

    def see_to(self, event: Event) -> Missed | None:
        """Take the checkpoints that are due; None when there is one of everything, or none was due."""
        if event.moment is Moment.OTHER or not self._values["auto_checkpoint"]:
            return None
        if not event.places:
            return self.fail(event, CasnapError("cannot tell the workspace: the event names no directory"))
        missed = [self._see_to(event, _named(place)) for place in event.places]
        return missed[0]  # what else an agent happens to be in is protected where it can be

    def fail(self, event: Event, error: CasnapError) -> Missed:
        """Remember what went wrong before anything was done about an event."""
        directory = self._concerned(event, error)
        self._remember(replace(self.book.read(directory), failure=self._failure(event.agent, error)))
        return Missed(error.message, error.hint or "")

    def _concerned(self, event: Event, error: CasnapError) -> str:
        """The directory that a failure concerns: that of the event, else the current one; of the configuration none."""
        if error.code == "bad-config":
            return ""
        return _named(event.places[0]) if event.places else escape(self.settings.cwd or b"/")

    def _see_to(self, event: Event, directory: str) -> Missed | None:
        before = self.book.read(directory)
        if not turns.after(event, before.turn_of(event.agent, event.session))[1]:
            self._remember_seldom(event, before)
            return None
        if event.moment is Moment.SESSION_END:  # agents kill what they wait for then
            with contextlib.suppress(Vanished):
                apart(lambda: self._detached(event, directory), seconds=0)
            return None
        with self.book.locked(directory, self._left, lambda: self._is_seen(directory)) as alone:
            notes = self._fired(event, directory)
            turn, due = turns.after(event, notes.turn_of(event.agent, event.session))
            if notes.saw_since(self.arrived, self.settings.boot):
                self._remember(notes.with_turn(event.agent, event.session, turn))
                return None
            if not due:  # another one has seen to it meanwhile
                return None
            if not alone:
                return self._still_at_work(directory)
            return self._waited_for(event, directory, notes, turn)

    def _waited_for(self, event: Event, directory: str, notes: Notes, turn: Turn) -> Missed | None:
        """What comes of a checkpoint in the time that is left; the process tells it: notes may have no place."""
        try:
            failed = apart(lambda: self._take(event, directory, notes, turn), seconds=self._left)
        except Vanished:
            return Missed(f"no checkpoint of {directory}: the process that took it was killed")
        if failed is None:
            return self._still_at_work(directory)
        return Missed(failed, "see casnap status") if failed else None

    def _remember_seldom(self, event: Event, before: Notes) -> None:
        """Note that an event came which asks for nothing: not each of many, and not what others write meanwhile."""
        fired = before.agents.get(event.agent)
        if fired is None or self.clock.now() - fired.time > SELDOM:
            self._remember(self._fired(event, before.directory))

    def _is_seen(self, directory: str) -> bool:
        """Whether a scan that began after this call did has been seen through: then everything is in a checkpoint."""
        return self.book.read(directory).saw_since(self.arrived, self.settings.boot)

    def _still_at_work(self, directory: str) -> Missed:
        return Missed(f"no checkpoint of {directory} in time: it is being taken", "the next event finds it")

    def _detached(self, event: Event, directory: str) -> str:
        with self.book.locked(directory, PATIENCE):
            notes = self._fired(event, directory)
            turn, _ = turns.after(event, notes.turn_of(event.agent, event.session))
            if not notes.saw_since(self.arrived, self.settings.boot):
                self._take(event, directory, notes, turn)
        self.book.forget_old(self.clock.now())
        return ""

    def _take(self, event: Event, directory: str, notes: Notes, turn: Turn) -> str:
        """Take a checkpoint, and remember what came of it; in a process of its own. Why there is none, else nothing."""
        from casnap.agents.taking import take

        self._remember(replace(notes, begun=self.clock.now()))
        looked = self.clock.monotonic()
        try:
            workspace = escape(os.fsencode(take(self.settings, event, unescape(directory), turn)))
        except Exception as error:  # whatever it is: a person must be able to read of it
            if stop := interruption_in(error):
                raise stop from None
            notes = replace(notes, failure=self._failure(event.agent, _as_known(error)))
        else:
            notes = replace(notes, workspace=workspace, boot=self.settings.boot, looked=looked)
            notes = replace(notes, succeeded=self.clock.now(), failure=None)
            notes = notes.with_turn(event.agent, event.session, turn)
        self._remember(replace(notes, begun=0))
        return "" if notes.failure is None else shortened(notes.failure.message) or "it failed"

    def _fired(self, event: Event, directory: str) -> Notes:
        """The notes of a directory, this event among them."""
        notes = self.book.read(directory)
        fired = Fired(self.clock.now(), event.moment.value, event.tool)
        return replace(notes, agents={**notes.agents, event.agent: fired})

    def _remember(self, notes: Notes) -> None:
        self.book.write(replace(notes, written=self.clock.now()))

    def _failure(self, agent: str, error: CasnapError) -> Failure:
        refused = error.code in ("no-auto-init", "forbidden-path")
        message, hint = (_storable(text) for text in (error.message, error.hint or ""))
        return Failure(self.clock.now(), agent, message, hint, refused=refused)


def _named(place: str) -> str:
    """A directory by the path that it has without links, as notes name it."""
    return escape(os.fsencode(os.path.realpath(place)))


def _storable(text: str) -> str:
    """``text`` without halves of characters: what Python makes of a path that is no UTF-8 cannot be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()


def _as_known(error: Exception) -> CasnapError:
    if isinstance(error, CasnapError):
        return error
    return CasnapError(f"unexpected failure: {type(error).__name__}: {error}", hint="report it")
