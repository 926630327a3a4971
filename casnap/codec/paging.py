"""Long lists in pages that an edit changes one of (docs/format/tree.md, "Pages").

A list of up to ``MAX_UNPAGED`` entries is one leaf. A longer one is cut into pages where a hash of the
entries themselves says so, which makes leaves; branches over them list the pages, and are cut the same way
until one branch is left. Where a page ends depends only on what is in it: an edit moves few cuts.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from casnap.errors import Damage
from casnap.model.ids import ObjectKey, ObjectKind

if TYPE_CHECKING:
    from casnap.model.objects import ObjectSource

MAX_UNPAGED = 512
MIN_PAGE = 64
MAX_PAGE = 1024
MAX_LEVEL = 8
"""Most branches above a leaf; more entries than any disk holds need fewer."""

# An entry ends its page with a chance of 1 in 192, so that pages have 256 entries on average. CRC-32 alone is
# linear: names that count upwards would fill a few lines of its range; the product scatters them.
_SCATTER = 0x9E3779B1
_MASK = 0xFFFFFFFF
_ENDS_BELOW = (1 << 32) // 192


class Page(Protocol):
    """What a branch tells of a page below it."""

    @property
    def id(self) -> bytes:
        """The object that the page is."""

    @property
    def count(self) -> int:
        """Entries on the page and below it."""

    @property
    def mark(self) -> bytes:
        """The bytes that decide whether a page of pages ends behind it."""


P = TypeVar("P", bound=Page, covariant=True)


class Node(Protocol[P]):
    """A leaf (level 0, without pages) or a branch."""

    @property
    def level(self) -> int:
        """How many nodes stand between it and an entry."""

    @property
    def pages(self) -> tuple[P, ...]:
        """The pages right below it."""

    def as_page(self, id: bytes) -> P:
        """What the branch above says of it, if ``id`` is its id."""


def cut(marks: Sequence[bytes]) -> Iterator[slice]:
    """The pages of a long list whose entries have these marks, in order."""
    start = 0
    while start < len(marks):
        end = _page_end(marks, start)
        yield slice(start, end)
        start = end


def is_page(marks: Sequence[bytes], *, last: bool) -> bool:
    """Whether entries with these marks, and no others, are a page of a list; ``last``: nothing follows."""
    if not marks or _page_end(marks, 0) != len(marks):
        return False
    return last or len(marks) == MAX_PAGE or (len(marks) >= MIN_PAGE and _ends_page(marks[-1]))


def assemble(pages: Sequence[P], put_branch: Callable[[int, tuple[P, ...]], P]) -> P:
    """The one page above all ``pages``; ``put_branch`` makes the branch of a level over the pages it is given."""
    level = 0
    while len(pages) > 1:
        level += 1
        whole = len(pages) <= MAX_UNPAGED
        pieces = [slice(None)] if whole else cut([page.mark for page in pages])
        pages = [put_branch(level, tuple(pages[piece])) for piece in pieces]
    return pages[0]


def walk(
    source: ObjectSource, kind: ObjectKind, id: bytes, decode: Callable[[bytes], Any]
) -> Iterator[tuple[bytes, Any]]:
    """Every node of a list with its id, each before those below it, from left to right.

    Raises:
        Damage: an object is missing or bad, or is not what the branch above it says.
    """
    root = decode(source.read(ObjectKey(kind, id)))
    yield id, root
    yield from _walk_below(source, kind, root, decode)


def _walk_below(
    source: ObjectSource, kind: ObjectKind, node: Any, decode: Callable[[bytes], Any]
) -> Iterator[tuple[bytes, Any]]:
    for page in node.pages:
        child = decode(source.read(ObjectKey(kind, page.id)))
        # Levels fall with each step down, so this ends for any bytes.
        if child.level != node.level - 1 or child.as_page(page.id) != page:
            raise Damage(f"cannot read {ObjectKey(kind, page.id)}: it is not what the branch above it says")
        yield page.id, child
        yield from _walk_below(source, kind, child, decode)


def _page_end(marks: Sequence[bytes], start: int) -> int:
    """Where the page ends that begins at ``start``."""
    limit = min(start + MAX_PAGE, len(marks))
    for position in range(start + MIN_PAGE - 1, limit):
        if _ends_page(marks[position]):
            return position + 1
    return limit


def _ends_page(mark: bytes) -> bool:
    return zlib.crc32(mark) * _SCATTER & _MASK < _ENDS_BELOW
