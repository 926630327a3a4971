"""One run of the program: its options, its output, and the store and workspace that it is about.

Nothing here is opened before a verb asks for it; the rooms below are imported only then, so that help and
mistakes are answered at once.
"""

from __future__ import annotations

import os
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

from casnap.cli.output import Output, printable
from casnap.errors import CasnapError, NoStore, Usage

if TYPE_CHECKING:
    from casnap.cli.progress import TerminalProgress
    from casnap.engine.context import Context
    from casnap.model.checkpoint import Checkpoint
    from casnap.model.report import WorkspaceInfo
    from casnap.model.revision import Revision
    from casnap.settings import Protected, Settings


class Declined(CasnapError):
    """The person who was asked did not say yes."""

    code = "declined"


class Options:
    """The options that every verb has, as they were given; what was not given is as the class has it."""

    store: str | None = None
    workspaces: tuple[str, ...] = ()
    json: bool = False
    format: str | None = None
    quiet: bool = False
    verbose: bool = False
    debug: bool = False
    no_color: bool = False
    strict: bool = False
    wait: float | None = None

    def keep(self, key: str, value: Any) -> None:
        """Note the value of an option; of workspaces each counts once, however often they are named."""
        if key == "workspace":
            self.workspaces = tuple(dict.fromkeys((*self.workspaces, *value)))
        else:
            setattr(self, key, value)

    @property
    def workspace(self) -> str | None:
        """The workspace that was named.

        Raises:
            Usage: there are several, and the verb is about one.
        """
        if len(self.workspaces) > 1:
            raise Usage(
                "bad options: -w was given twice, and differs",
                hint="give it once; checkpoint and rollback take several",
            )
        return self.workspaces[0] if self.workspaces else None


def one_of(what: str, *given: tuple[str, str | None]) -> str | None:
    """The one value among several ways to say the same thing; the same said twice is no contradiction.

    Raises:
        Usage: two of them differ.
    """
    said = [(way, value) for way, value in given if value is not None]
    if len({value for _, value in said}) > 1:
        ways = " and ".join(way for way, _ in said)
        raise Usage(f"bad arguments: {what} was given twice, as {ways}", hint="give it once")
    return said[0][1] if said else None


class Session:
    """What a verb works with. ``raw_paths`` is what followed ``--`` (a command on ``run``), None when nothing did."""

    def __init__(self, raw_paths: list[str] | None = None) -> None:
        self.options = Options()
        self.raw_paths = raw_paths
        self._context: Context | None = None

    @property
    def as_json(self) -> bool:
        """Whether the answer is a JSON document."""
        return self.options.json or self.options.format == "json"

    @property
    def bare_array(self) -> bool:
        """Whether a list is to be the array alone."""
        return self.options.format == "json" and not self.options.json

    @cached_property
    def settings(self) -> Settings:
        """Options and environment."""
        from casnap.settings import load_settings

        return load_settings(store=self.options.store, wait=self.options.wait, own_process=True)

    @cached_property
    def output(self) -> Output:
        """Where to speak."""
        from casnap.settings import wants_plain

        plain = self.options.no_color or self.as_json or wants_plain(self.settings.environ)
        return Output(quiet=self.options.quiet, plain=plain)

    @cached_property
    def progress(self) -> TerminalProgress:
        """What shows that a long command is alive."""
        from casnap.cli.progress import TerminalProgress

        return TerminalProgress(self.output)

    def context(self) -> Context:
        """The opened store.

        Raises:
            NoStore: there is none.
        """
        if self._context is None:
            from casnap.settings import open_context

            self._context = open_context(self.settings, progress=self.progress)
        return self._context

    def protect_all(self) -> list[Protected]:
        """Register each workspace that was named, or the one around here; none when one of them cannot be."""
        given = self.options.workspaces
        if len(given) > 1:
            self._require_places(given)
        found = [self._protect(place) for place in given or (None,)]
        return list({one.workspace.id: one for one in found}.values())  # two spellings of one are one

    def _require_places(self, given: tuple[str, ...]) -> None:
        from casnap.engine.workspaces import is_registered, require_place
        from casnap.fs.paths import canonical

        try:
            context: Context | None = self.context()
        except NoStore:
            context = None
        store, home = os.fsencode(self.settings.store), self.settings.home
        for place in given:
            if context is None or not is_registered(context, place):
                require_place(canonical(place), store=store, home=home, allow_home=False)

    def protect(self, *, allow_home: bool = False) -> Protected:
        """Register the workspace, making the store where there is none."""
        return self._protect(self.options.workspace, allow_home=allow_home)

    def _protect(self, given: str | None, *, allow_home: bool = False) -> Protected:
        from casnap.settings import protect

        context = self._context
        protected = protect(self.settings, given, context=context, allow_home=allow_home, progress=self.progress)
        self._context = protected.context
        self.echo(protected.workspace)
        for note in protected.notes:
            self.output.talk(f"note: {printable(note)}")
        return protected

    def workspace(self) -> WorkspaceInfo:
        """The registered workspace that the verb is about."""
        return self._workspace(self.options.workspace)

    def workspaces(self) -> list[WorkspaceInfo]:
        """The registered workspaces that were named, or the one around here."""
        found = [self._workspace(given) for given in self.options.workspaces or (None,)]
        return list({one.id: one for one in found}.values())

    def _workspace(self, given: str | None) -> WorkspaceInfo:
        from casnap.settings import resolve_workspace

        workspace = resolve_workspace(self.settings, self.context(), given)
        self.echo(workspace)
        return workspace

    def echo(self, workspace: WorkspaceInfo) -> None:
        """Say which workspace it is about."""
        self.output.talk(f"workspace {printable(workspace.path)}")

    def paths(self, workspace: WorkspaceInfo) -> tuple[bytes, ...] | None:
        """What followed ``--``, relative to the workspace; None when there was none."""
        if self.raw_paths is None:
            return None
        from casnap.settings import paths_within

        if len(self.options.workspaces) > 1:
            raise Usage("bad arguments: paths of several workspaces", hint="give one -w, and what follows -- is in it")
        exact = self.options.workspace is not None
        return paths_within(self.settings, workspace, self.raw_paths, exact=exact)

    def path(self, workspace: WorkspaceInfo, given: str) -> bytes:
        """A path that was typed, relative to the workspace."""
        from casnap.settings import paths_within

        (path,) = paths_within(self.settings, workspace, [given], exact=self.options.workspace is not None)
        return path

    def checkpoint(self, workspace: WorkspaceInfo, revision: Revision, *, deleted: bool = False) -> Checkpoint:
        """The checkpoint that a revision names."""
        from casnap.engine.history import resolve

        return resolve(self.context(), workspace, revision, deleted=deleted)

    def document(self, verb: str, workspace: WorkspaceInfo | None, /, **fields: Any) -> None:
        """Answer with a JSON document."""
        from casnap.cli.as_json import document, dump

        self.output.bytes(dump(document(verb, self.store_path, workspace, fields)))

    @property
    def store_path(self) -> str:
        """Where the store is, or would be."""
        return printable(str(self.settings.store))

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask the person at the terminal, when there is one and they have not agreed already.

        Raises:
            Declined: they did not say yes.
        """
        if not yes and self.may_ask and self.output.ask(f"{question} [y/N] ").lower() not in ("y", "yes"):
            raise Declined("stopped: the answer was not yes, and nothing was changed", hint="answer y, or give --yes")

    @property
    def may_ask(self) -> bool:
        """Whether there is a person to ask."""
        from casnap.settings import may_ask

        return may_ask(self.settings.environ, sys.stdin, sys.stderr)

    def free_space_if_due(self) -> None:
        """Let space be freed in the background where much of it is dead."""
        from casnap.settings import free_space_if_due

        if self._context is not None:
            free_space_if_due(self.settings, self._context)

    def finish(self) -> int:
        """Let everything out that was said; 0 when it got out."""
        return self.output.finish() if "output" in self.__dict__ else Output().finish()

    def close(self) -> None:
        """Close the store, and take a bar away that an error left behind."""
        if self._context is not None:
            self.progress.end()
            for note in self._context.store.notes:
                self.output.talk(f"note: {printable(note)}")
            self._context.store.close()
            self._context = None
