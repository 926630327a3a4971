"""What may stand on a command line, as data: other names of verbs, and options.

Options of every verb, and those of the verbs that run before every step. From this both the options of click are made
(:mod:`casnap.cli.options`) and what reads known spellings without it (:mod:`casnap.cli.spellings`).
"""

from __future__ import annotations

from typing import Literal

ALIASES = {
    "create": "checkpoint",
    "save": "checkpoint",
    "savepoint": "checkpoint",
    "snapshot": "checkpoint",
    "ls": "list",
    "info": "show",
    "stats": "status",
    "restore": "rollback",
    "rewind": "rollback",
    "rm": "delete",
    "clean": "cleanup",
    "fsck": "check",
    "prune": "cleanup",
    "unregister": "forget",
}
"""Other names of verbs, most of them those that other tools use."""


class Option:
    """An option: the ``key`` of its value, its ``names``, what it does, and a word for the value that it takes.

    ``repeated`` says what becomes of several values: the ``last`` counts, they must be the ``same``, or ``all`` count.
    """

    def __init__(
        self,
        key: str,
        names: tuple[str, ...],
        help: str,
        metavar: str | None = None,
        takes: Literal["nothing", "text", "count", "seconds", "choice"] = "nothing",
        *,
        choices: tuple[str, ...] = (),
        repeated: Literal["last", "same", "all"] = "last",
    ) -> None:
        self.key = key
        self.names = names
        self.help = help
        self.metavar = metavar
        self.takes = takes
        self.choices = choices
        self.repeated = repeated


class Grammar:
    """What may follow a verb: ``argument`` is the key of the one word that may, empty where none may.

    The help shows it as ``metavar``. With ``takes_paths`` paths may follow ``--``.
    """

    def __init__(
        self,
        options: tuple[Option, ...] = (),
        argument: str = "",
        metavar: str | None = None,
        *,
        takes_paths: bool = False,
    ) -> None:
        self.options = options
        self.argument = argument
        self.metavar = metavar
        self.takes_paths = takes_paths


EVERYWHERE = (
    Option("store", ("--store",), "The store to use.", "DIR", "text", repeated="same"),
    Option(
        "workspace",
        ("-w", "--workspace", "-C", "--root", "-p"),
        "The workspace, exactly this directory; repeated on checkpoint and rollback: each of them.",
        "DIR",
        "text",
        repeated="all",
    ),
    Option("json", ("--json",), "One JSON object on standard output."),
    Option(
        "format",
        ("--format",),
        "json: as --json, on list, log and workspace list the bare array.",
        takes="choice",
        choices=("table", "json"),
    ),
    Option("quiet", ("-q", "--quiet"), "Say nothing but what was asked for."),
    Option("verbose", ("-v", "--verbose"), "Name each path."),
    Option("strict", ("--strict",), "Exit 3 when a rule left anything out."),
    Option("debug", ("--debug",), "Show where an error comes from."),
    Option("no_color", ("--no-color",), "No colour and no progress bar."),
    Option("wait", ("--wait",), "How long to wait for a lock (10).", "SECONDS", "seconds"),
)
"""The options that stand before or after any verb."""

AGREED = Option("yes", ("-y", "--yes", "--force"), "Do not ask.")

AT_ONCE = {
    "checkpoint": Grammar(
        (
            Option(
                "named",
                ("-s", "--snapshot", "-i", "--id", "--name"),
                "The name, as an option.",
                "NAME",
                "text",
                repeated="same",
            ),
            Option(
                "message",
                ("-m", "--message", "--desc", "--description", "-l", "--label"),
                "What it is about.",
                "TEXT",
                "text",
                repeated="same",
            ),
            Option("metadata", ("--metadata",), "A JSON object to keep with it.", "JSON", "text", repeated="same"),
            Option("pin", ("--pin",), "Keep it from being deleted."),
            Option(
                "replace",
                ("--replace",),
                "A NAME that is taken moves here; the checkpoint that had it stays as a step.",
            ),
            Option("if_changed", ("--if-changed",), "Make none when nothing changed since head."),
            Option("full", ("--full",), "Read every file again, believing no cache."),
            AGREED,
        ),
        argument="name",
    ),
    "hook": Grammar(
        (
            Option("agent", ("--agent",), "Whose events they are, where these do not say so.", "NAME", "text"),
            Option("require", ("--require",), "Exit 2, which keeps a tool from running, when no checkpoint was taken."),
        )
    ),
    "list": Grammar(
        (
            Option("everywhere", ("--all",), "Of all workspaces."),
            Option("limit", ("-n", "--limit"), "The newest N of each workspace.", "N", "count"),
            Option("safety", ("--safety",), "Safety checkpoints too."),
            Option("reverse", ("--reverse",), "Oldest first."),
        )
    ),
    "status": Grammar(),
    "rollback": Grammar(
        (
            Option("snapshot", ("-s", "--snapshot"), "The checkpoint, as an option.", "REV", "text", repeated="same"),
            Option(
                "back",
                ("-n", "--num-ancestors"),
                "The N-th ancestor of head: 1 is its parent, 0 head itself.",
                "N",
                "text",
                repeated="same",
            ),
            Option("step", ("--step",), "The checkpoint with this step.", "N", "text", repeated="same"),
            Option(
                "instant",
                ("--to",),
                "The newest checkpoint that was there at this time.",
                "TIME",
                "text",
                repeated="same",
            ),
            Option("preview", ("--preview", "--dry-run"), "Show what would be done, and do nothing."),
            Option("keep_git", ("--keep-git",), "Leave every git directory as it is."),
            Option(
                "no_safety",
                ("--no-safety",),
                "Take no safety checkpoint: no way back. For a full or read-only store.",
            ),
            AGREED,
        ),
        argument="revision",
        metavar="[REV]",
        takes_paths=True,
    ),
}
"""What may follow the verbs that must begin at once. What each does is ``carry_out`` in the module of its name."""

RESTORE = Grammar(
    (
        *AT_ONCE["rollback"].options,
        Option(
            "target",
            ("--target",),
            "Write it into DIR and leave the workspace alone: restore-to.",
            "DIR",
            "text",
        ),
    ),
    argument="revision",
    metavar="[REV]",
    takes_paths=True,
)
"""``rollback`` under a name which some expect to write elsewhere."""


def grammar_of(word: str) -> Grammar | None:
    """What may follow a verb, under whatever name; None where click alone knows."""
    return RESTORE if word == "restore" else AT_ONCE.get(ALIASES.get(word, word))
