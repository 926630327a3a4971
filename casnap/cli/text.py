"""Nouns as a person reads them: one line each, unprintable bytes escaped."""

from __future__ import annotations

import datetime as dt
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from casnap.cli.output import printable
from casnap.model.ids import SHORT_ID
from casnap.model.paths import escape
from casnap.model.tree import NANOSECONDS, AnyEntry, Device, File, OmitReason, Omitted, Symlink

if TYPE_CHECKING:
    from casnap.model.change import Aspect, Change
    from casnap.model.checkpoint import Checkpoint, Counts
    from casnap.model.report import Problem

_SIZE_UNITS = ("kB", "MB", "GB", "TB")
_KILO = 1000


def size(count: int) -> str:
    """A number of bytes, two or three digits of it."""
    if count < _KILO:
        return f"{count} B"
    value = float(count)
    for unit in _SIZE_UNITS:
        value /= _KILO
        if value < _KILO - 0.5 or unit == _SIZE_UNITS[-1]:
            break
    return f"{value:.1f} {unit}"


def quantity(count: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {plural or noun + 's'}"


def moment(ns: int) -> str:
    """An instant in local time with its offset, to the second."""
    return dt.datetime.fromtimestamp(ns // NANOSECONDS, dt.UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")


def counts_text(counts: Counts) -> str:
    """Paths added, changed and removed."""
    return f"+{counts.added} ~{counts.changed} -{counts.removed}"


def left_out_text(counts: Mapping[str, int]) -> str:
    """Entries that were left out, by the reason."""
    return ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))


def tag(checkpoint: Checkpoint) -> str:
    """The fields that name a checkpoint."""
    step = () if checkpoint.step is None else (f"step={checkpoint.step}",)
    name = () if checkpoint.name is None else (f"name={checkpoint.name}",)
    return " ".join((*step, *name, f"id={checkpoint.id[:SHORT_ID]}"))


def checkpoint_mark(checkpoint: Checkpoint) -> str:
    """A checkpoint in a drawing."""
    words = [word for word in ("head", "good") if getattr(checkpoint, word)]
    marks = f" ({', '.join(words)})" if words else ""
    return f"{tag(checkpoint)}{marks} {moment(checkpoint.created_ns)} {printable(checkpoint.message)}".rstrip()


def checkpoint_line(checkpoint: Checkpoint, seconds: float) -> str:
    """The record of a checkpoint that was just made."""
    return " ".join(
        (
            "checkpoint",
            tag(checkpoint),
            f"digest={checkpoint.digest[:SHORT_ID]}",
            counts_text(checkpoint.counts),
            f"{size(checkpoint.new_bytes)} new",
            f"{seconds:.2f} s",
        )
    )


def change_line(change: Change) -> str:
    """A path that differs: git's letter, the path and, for a change, what of it differs."""
    from casnap.model.change import Aspect, ChangeKind  # here and below, since most commands show no changes

    aspects = change.aspects if change.only_times else change.aspects & ~Aspect.TIME  # beside others it says nothing
    words = aspect_words(aspects) if change.kind is ChangeKind.CHANGED else []
    return f"{plan_line(change)}  ({', '.join(words)})" if words else plan_line(change)


def aspect_words(aspects: Aspect) -> list[str]:
    """What of a path differs, as words."""
    from casnap.model.change import Aspect

    return [aspect.name.lower() for aspect in Aspect if aspect in aspects and aspect.name]


def plan_line(change: Change) -> str:
    """A path that differs: git's letter and the path; the workspace itself is a dot."""
    return f"{change.kind.value} {path_text(change.path)}"


def path_text(path: bytes) -> str:
    """A path inside the workspace; the workspace itself is a dot."""
    return escape(path) or "."


def problem_line(problem: Problem) -> str:
    """What went wrong with a path."""
    return f"{path_text(problem.path)}: {printable(problem.message)}"


def entry_line(path: bytes, entry: AnyEntry) -> str:
    """An entry of a tree, somewhat as ``ls -l`` shows it."""
    if isinstance(entry, Omitted):
        return f"{'-' * 10} {'-':>12} {path_text(path)} (left out: {reason_text(entry.reason)})"
    length = str(entry.size) if isinstance(entry, File) else "-"
    target = f" -> {escape(entry.target)}" if isinstance(entry, Symlink) else ""
    return f"{_mode_text(entry)} {length:>12} {path_text(path)}{target}"


def reason_text(reason: int) -> str:
    """Why an entry was left out."""
    return OmitReason(reason).name.lower().replace("_", " ")


def _mode_text(entry: AnyEntry) -> str:
    letter = entry.letter
    if isinstance(entry, Device) and not entry.block:
        letter = "c"
    return letter.replace("f", "-") + stat.filemode(getattr(entry, "mode", 0))[1:]


def block(title: str, lines: Sequence[str]) -> Iterator[str]:
    """A field of several lines: the first beside its title, the others below it."""
    for number, line in enumerate(lines):
        yield f"{title if number == 0 else '':<10} {line}".rstrip()
