"""Long output goes through a pager: at a terminal where a person sits, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from casnap.settings import DEFAULT_PAGER, pager_command
from support.cli import Result, run
from support.terminal import Terminal, plain_environment

Call = Callable[..., Result]

MARKING = "sed s/^/PAGED:/"


@pytest.fixture
def edited(history: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a difference, in an environment where somebody may be asked."""
    plain_environment(monkeypatch)
    (history / "README").write_text("edited\n")
    return history


def at_terminal(workspace: Path, *args: str, status: int = 0, **env: str) -> str:
    terminal = Terminal("diff", *args, cwd=workspace, **{"TERM": "xterm", "NO_COLOR": "1", **env})
    assert terminal.finish() == status
    return terminal.said.replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("environ", "command"),
    [
        ({}, DEFAULT_PAGER),
        ({"PAGER": "more"}, "more"),
        ({"PAGER": "more", "CASNAP_PAGER": "most -x"}, "most -x"),
        ({"PAGER": "cat"}, None),
        ({"PAGER": ""}, None),
        ({"PAGER": "more", "CASNAP_PAGER": ""}, None),
        ({"PAGER": "more", "CASNAP_PAGER": "cat"}, None),
        ({"PAGER": "more", "TERM": "dumb"}, None),
    ],
)
def test_the_environment_names_the_pager(environ: dict[str, str], command: str | None) -> None:
    assert pager_command({"TERM": "xterm", **environ}) == command


def test_a_terminal_gets_a_pager_and_the_status_stays(edited: Path) -> None:
    said = at_terminal(edited, "--exit-code", PAGER=MARKING, status=4)
    assert "PAGED:diff --git a/README b/README\n" in said
    assert "PAGED:+edited\n" in said
    assert "PAGED: README | 2 +-\n" in at_terminal(edited, "--stat", PAGER="false", CASNAP_PAGER=MARKING)


@pytest.mark.parametrize("extra", [{"CI": "true"}, {"CLAUDECODE": "1"}, {"TERM": "dumb"}])
def test_where_nobody_reads_there_is_no_pager(edited: Path, extra: dict[str, str]) -> None:
    said = at_terminal(edited, **{"PAGER": MARKING, **extra})
    assert "PAGED" not in said
    assert "\n+edited\n" in said


def test_a_pipe_and_json_get_no_pager(edited: Path) -> None:
    assert "PAGED" not in run("diff", cwd=edited, env={"PAGER": MARKING, "TERM": "xterm"}, check=0).stdout
    assert "PAGED" not in at_terminal(edited, "--json", PAGER=MARKING)


def test_nothing_to_show_starts_no_pager(edited: Path, tmp_path: Path) -> None:
    (edited / "README").write_text("read me\n")
    at_terminal(edited, PAGER=f"touch {tmp_path / 'started'}")
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("pager", ["no-such-pager -x", "false", "'unbalanced", "sh -c 'cat >&-; exit 127'", " "])
def test_a_broken_pager_is_done_without(edited: Path, pager: str) -> None:
    said = at_terminal(edited, PAGER=pager)
    assert said.count("\n+edited\n") == 1
    assert f"note: shown without {pager}" in said


def test_a_reader_may_leave_early(edited: Path) -> None:
    (edited / "README").write_text("".join(f"{number}\n" for number in range(20_000)))
    assert "+19999\n" not in at_terminal(edited, "--exit-code", PAGER="head -n 3", status=4)
