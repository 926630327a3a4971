"""docs/format says what the code does: its limits, its layouts, and the tests that hold it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "format").glob("*.md"))
TESTS = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
MODULES = [
    importlib.import_module(name)
    for name in (
        "casnap.codec.compression",
        "casnap.codec.records",
        "casnap.codec.packs",
        "casnap.codec.paging",
        "casnap.codec.trees",
        "casnap.codec.entries",
        "casnap.codec.lines",
        "casnap.model.paths",
    )
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"`(test_\w+)`", page.read_text("utf-8")))
    assert {name for name in named if f"def {name}(" not in TESTS} == set()


def test_the_limits_in_the_table_are_those_of_the_code() -> None:
    table = (ROOT / "docs/format/README.md").read_text("utf-8").partition("## Limits")[2]
    stated: dict[str, int] = {}
    for numbers, names in re.findall(r"^\| [^|]+ \| ([\d,]+(?: to [\d,]+)?) \| ([^|]+) \|", table, re.MULTILINE):
        values = [int(number.replace(",", "")) for number in numbers.split(" to ")]
        stated |= dict(zip(re.findall(r"`(\w+)`", names), values, strict=True))
    assert len(stated) == 14
    actual = {name: next(vars(module)[name] for module in MODULES if hasattr(module, name)) for name in stated}
    assert stated == actual


@pytest.mark.parametrize(("name", "size"), [("record.md", 40), ("pack.md", 64)])
def test_the_fields_of_a_header_add_up_to_its_length(name: str, size: int) -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", (ROOT / "docs/format" / name).read_text("utf-8"), re.MULTILINE)
    total, fields = 0, iter(rows)
    while total < size:
        total += int(next(fields)[0])
    assert total == size
    assert rows[len(rows) - len(list(fields)) - 1][1].strip().endswith("checksum")
