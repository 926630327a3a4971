"""What a checkpoint records of the ignore rules that it was made under (docs/format/checkpoint.md, ``rules``).

Ignore files that were captured are in its tree; here is what the tree does not tell: settings, ignore files that
their own patterns leave out, and what TOML files exclude: to know that a reader would have to understand TOML.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from casnap.model.paths import ROOT, escape, join, unescape
from casnap.model.policy import Selection, Sensitive
from casnap.model.tree import AnyEntry, File
from casnap.workspace.found import FoundDirectory
from casnap.workspace.rules import CASNAP_FILE, TOML_FILES, Texts

MAX_RECORDED = 16 << 10
"""Bytes of an ignore file that is not captured, above which it is only recorded as not known."""


class RecordedRules(Struct, frozen=True):
    """The rules of a checkpoint beside the ignore files in its tree.

    ``texts`` has ignore files that were not captured, by path; None: not known what it says.
    """

    selection: Selection
    texts: Mapping[bytes, bytes | None] = {}


def recorded_rules(
    found: Mapping[bytes, FoundDirectory], entry_at: Callable[[bytes], AnyEntry | None]
) -> tuple[str, ...]:
    """The rules that a scan went by, as a checkpoint records them. ``entry_at`` gives what it took at a path."""
    selection = found[ROOT].rules.selection
    lines = [f"exclude {escape(line)}" for line in selection.exclude.split(b"\n") if line]
    if selection.use_gitignore:
        lines.append("use-gitignore")
    if selection.exclude_caches:
        lines.append("exclude-caches")
    if selection.max_file_size is not None:
        lines.append(f"max-file-size {selection.max_file_size}")
    if not selection.include_git:
        lines.append("exclude-git")
    if selection.sensitive is not Sensitive.KEEP:
        lines.append(f"sensitive {selection.sensitive}")
        lines += [f"sensitive-name {escape(_bytes(pattern))}" for pattern in selection.sensitive_patterns]
    for path in sorted(found):
        lines += _files(path, found[path].texts, entry_at)
    return tuple(lines)


def _files(directory: bytes, texts: Texts, entry_at: Callable[[bytes], AnyEntry | None]) -> Iterator[str]:
    for name, text in sorted(texts.items()):
        path = join(directory, name)
        if isinstance(entry_at(path), File) and path not in TOML_FILES:
            continue
        if text is None or len(text) > MAX_RECORDED:
            yield f"unread {escape(path)}"
        else:
            yield f"file {escape(path)}\t{escape(text)}"


def parse_rules(lines: Iterable[str]) -> RecordedRules:
    """What :func:`recorded_rules` wrote. A line of another kind may protect anything: nothing is known then."""
    selection = Selection(exclude_caches=False)
    texts: dict[bytes, bytes | None] = {}
    for line in lines:
        word, _, rest = line.partition(" ")
        try:
            if word == "file":
                path, _, text = rest.partition("\t")
                texts[unescape(path)] = unescape(text)
            elif word == "unread":
                texts[unescape(rest)] = None
            else:
                selection = _selected(selection, word, rest)
        except ValueError:
            texts[CASNAP_FILE] = None
    return RecordedRules(selection, texts)


def _selected(selection: Selection, word: str, rest: str) -> Selection:
    match word:
        case "exclude":
            return replace(selection, exclude=selection.exclude + unescape(rest) + b"\n")
        case "use-gitignore":
            return replace(selection, use_gitignore=True)
        case "exclude-caches":
            return replace(selection, exclude_caches=True)
        case "max-file-size":
            return replace(selection, max_file_size=int(rest))
        case "exclude-git":
            return replace(selection, include_git=False)
        case "sensitive":
            return replace(selection, sensitive=Sensitive(rest), sensitive_patterns=())
        case "sensitive-name":
            name = unescape(rest).decode("utf-8", "surrogateescape")
            return replace(selection, sensitive_patterns=(*selection.sensitive_patterns, name))
        case _:
            raise ValueError(f"unknown rule: {word}")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
