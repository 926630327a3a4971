"""The documentation: links lead somewhere, and what it names exists."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import casnap
from casnap import errors
from casnap.cli.app import VERBS, program
from casnap.cli.grammar import ALIASES
from support.options import PAGE, update
from support.source import CHECKOUT

PAGES = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")])
SOURCES = sorted(path for room in ("casnap", "tests", "fuzz") for path in (CHECKOUT / room).rglob("*.py"))

LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#\s]*)(#[^)\s]+)?\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`|^    (.+)$", re.MULTILINE)
COMMAND = re.compile(r"(?:^|&& )(?:\$ )?casnap ([a-z][a-z-]*)([^#\n]*)", re.MULTILINE)
REPOSITORY_PATH = re.compile(r"(?<![\w./~$-])(?:casnap|tests|fuzz|docs)/[\w./-]*\.(?:md|py|sh|toml)\b")
MAKE = re.compile(r"(?:^|`)make ([a-z]+)", re.MULTILINE)

page = pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(CHECKOUT)))


def _slug(heading: str) -> str:
    """The anchor that a heading gets on the usual sites."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _anchors(path: Path) -> set[str]:
    return {_slug(line.lstrip("#")) for line in path.read_text("utf-8").splitlines() if line.startswith("#")}


def _commands(page: str) -> list[tuple[str, str]]:
    """Every call of casnap in code: its verb, and what follows it."""
    inline = [quoted or indented for quoted, indented in CODE.findall(FENCE.sub("", page))]
    return [call for code in [*inline, *(code for _, code in FENCE.findall(page))] for call in COMMAND.findall(code)]


@functools.cache
def _options(verb: str) -> frozenset[str]:
    command = program.get_command(click.Context(program), verb)
    assert command is not None
    return frozenset(name for option in command.params for name in option.opts) | {"--help", "-h"}


@page
def test_every_link_leads_to_a_file_and_a_heading(path: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(path.read_text("utf-8")):
        file = (path.parent / target).resolve() if target else path
        if not file.exists() or (anchor and anchor[1:] not in _anchors(file)):
            broken.append(target + anchor)
    assert broken == []


@page
def test_every_command_is_a_verb_with_these_options(path: Path) -> None:
    wrong = []
    for verb, rest in _commands(path.read_text("utf-8")):
        if verb not in VERBS and verb not in ALIASES:
            wrong.append(f"casnap {verb}")
            continue
        words = rest.partition(" -- ")[0].split()
        used = [re.split(r"[=,.;:)]", word)[0] for word in words if re.match(r"--?[a-zA-Z]", word)]
        wrong += [f"casnap {verb} {option}" for option in used if option not in _options(verb)]
    assert wrong == []


@page
def test_every_test_that_is_named_exists(path: Path) -> None:
    defined = {name for source in SOURCES for name in re.findall(r"def (test_\w+)\(", source.read_text("utf-8"))}
    assert set(re.findall(r"`(test_\w+)`", path.read_text("utf-8"))) - defined == set()


@page
def test_every_make_target_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))
    assert set(MAKE.findall(path.read_text("utf-8"))) - targets == set()


@pytest.mark.parametrize("path", [*PAGES, *SOURCES], ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_every_file_of_the_checkout_that_is_named_exists(path: Path) -> None:
    named = set(REPOSITORY_PATH.findall(path.read_text("utf-8")))
    assert {name for name in named if not (CHECKOUT / name).exists() and not (path.parent / name).exists()} == set()


def test_every_page_is_reached_from_the_index() -> None:
    reached: set[Path] = set()
    waiting = [CHECKOUT / "docs" / "README.md"]
    while waiting:
        here = waiting.pop()
        if here in reached or here.suffix != ".md" or not here.is_file():
            continue
        reached.add(here)
        waiting += [(here.parent / target).resolve() for target, _ in LINK.findall(here.read_text("utf-8")) if target]
    assert [path for path in PAGES if path.is_relative_to(CHECKOUT / "docs") and path not in reached] == []


def test_the_option_tables_are_those_of_the_program() -> None:
    text = PAGE.read_text("utf-8")
    assert text == update(text), "run `make fmt`"


def test_every_error_of_the_package_is_in_the_table() -> None:
    table = (CHECKOUT / "docs/reference/exit-codes.md").read_text("utf-8")
    rows = set(re.findall(r"^\| (\d+) \| `([\w-]+)` \| `(\w+)` \|", table, re.MULTILINE))
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.CasnapError)]
    assert rows == {(str(kind.exit_status), kind.code, kind.__name__) for kind in kinds}
    assert all(hasattr(casnap, name) for _, _, name in rows)


def test_the_readme_in_chinese_has_the_same_parts_as_the_one_in_english() -> None:
    english, chinese = ((CHECKOUT / name).read_text("utf-8") for name in ("README.md", "README.zh.md"))
    assert FENCE.findall(chinese) == FENCE.findall(english)

    marks = re.compile(r"^(#+|\d\.|-|\|)", re.MULTILINE)
    assert marks.findall(chinese) == marks.findall(english)
    assert sorted({link for link, _ in LINK.findall(chinese)} - {"README.md"}) == sorted(
        {link for link, _ in LINK.findall(english)} - {"README.zh.md"}
    )


@pytest.mark.parametrize("name", ["docs/reference/python.md"])
def test_the_python_that_is_shown_runs_as_it_stands(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "file").write_text("content\n")
    monkeypatch.chdir(tmp_path / "workspace")
    for language, code in FENCE.findall((CHECKOUT / name).read_text("utf-8")):
        if language == "python":
            exec(compile(code, name, "exec"), {})
    assert "before-refactor" in capsys.readouterr().out


def test_the_tutorial_runs_as_it_stands(tmp_path: Path) -> None:
    text = (CHECKOUT / "docs/tutorial/README.md").read_text("utf-8").replace("/tmp/", f"{tmp_path}/")
    script = "".join(code for language, code in FENCE.findall(text) if language == "sh")
    script = script.replace("cd /tmp ", f"cd {tmp_path} ")
    launcher = tmp_path / "casnap"
    launcher.write_text(f'#!/bin/sh\nPYTHONPATH="{CHECKOUT}" exec "{sys.executable}" -m casnap "$@"\n')
    launcher.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-eu"], input=script, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "potatoes" in done.stdout
    assert not (tmp_path / "garden").exists()
