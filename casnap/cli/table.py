"""Rows and columns: dressed by rich on a terminal, plain and aligned everywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from casnap.cli.output import Output


def show_table(output: Output, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text below their headings."""
    if output.colour:
        _show_rich(headings, rows)
    else:
        for line in _aligned([headings, *rows]):
            output.data(line)


def _show_rich(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # here, since it takes longer to import than most commands to run
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(_width(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()


def _width(text: str) -> int:
    """Columns that ``text`` takes on a terminal: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    import unicodedata  # here, since few names and messages need it

    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
