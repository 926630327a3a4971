"""What users of three other systems type works here: each row of docs/how-to/coming-from.md is run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

import casnap
from casnap.cli.app import VERBS
from casnap.cli.grammar import ALIASES
from support.cli import CHECKOUT, Result, environment, run
from support.oracle import difference, snapshot

PAGE = CHECKOUT / "docs" / "how-to" / "coming-from.md"
ROWS: dict[str, Callable[[Path, Call], None]] = {}


class Call(Protocol):
    def __call__(self, *args: str | bytes | Path, cwd: str | Path = ".", check: int | None = None) -> Result: ...


def row(cell: str) -> Callable[[Callable[[Path, Call], None]], Callable[[Path, Call], None]]:
    """Say which row of the page a function runs, by the row's first cell."""

    def declare(run: Callable[[Path, Call], None]) -> Callable[[Path, Call], None]:
        ROWS[cell] = run
        return run

    return declare


def cells() -> list[str]:
    lines = re.findall(r"^\| (.+?) \| .+ \|.*\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return [line for line in lines if line != "there"]


def test_every_row_of_the_page_is_run_and_every_run_is_a_row() -> None:
    assert len(cells()) == len(set(cells())) > 25
    assert set(cells()) == set(ROWS)


@pytest.mark.parametrize("cell", cells())
def test_the_row_works(cell: str, workspace: Path, call: Call) -> None:
    ROWS[cell](workspace, call)


def edit(workspace: Path, text: str) -> None:
    (workspace / "src" / "main.py").write_text(text)


def absent(*verbs: str) -> Callable[[Path, Call], None]:
    """The verbs are not there yet, and that is said like any other mistake."""

    def run(workspace: Path, call: Call) -> None:
        for verb in verbs:
            assert verb not in VERBS | ALIASES
            assert "there is no such verb" in call(verb, cwd=workspace, check=2).stderr

    return run


# -- ws-ckpt ---------------------------------------------------------------------------------------------------


@row("`ws-ckpt init -w W`")
def _(workspace: Path, call: Call) -> None:
    inode = workspace.stat().st_ino
    assert call("init", "-w", workspace, check=0).stdout.startswith("protected ")
    assert call("init", "-w", workspace, check=0).stdout.startswith("already protected ")
    assert (workspace.stat().st_ino, workspace.is_symlink()) == (inode, False)


@row("`ws-ckpt checkpoint -w W -s ID -m MSG --metadata JSON`")
def _(workspace: Path, call: Call) -> None:
    w = ("-w", workspace)
    call("checkpoint", *w, "-s", "snap-001", "-m", "before", "--metadata", '{"ticket": 7}', check=0)
    shown = call("show", *w, "snap-001", "--json", check=0).json()["checkpoint"]
    assert (shown["message"], shown["metadata"], shown["step"]) == ("before", {"ticket": 7}, 1)
    call("checkpoint", *w, "-i", "snap-002", check=0)
    call("checkpoint", *w, "-s", "snap-001", check=14)
    assert re.search(r" name=ckpt-\d{8}T\d{6}Z-3 ", call("checkpoint", *w, check=0).stdout)
    assert call("checkpoint", *w, "--if-changed", check=0).stdout.startswith("unchanged step=3 ")


@row("`ws-ckpt rollback -w W -s ID --preview`")
def _(workspace: Path, call: Call) -> None:
    w = ("-w", workspace)
    made = call("checkpoint", *w, "-s", "snap-001", "--json", check=0).json()["checkpoint"]
    before = snapshot(workspace)
    for name in ("snap-001", "1", made["id"][:6]):
        edit(workspace, "broken\n")
        assert call("rollback", *w, "-s", name, "--preview", check=0).stdout == "M src/main.py\n"
        assert (workspace / "src" / "main.py").read_text() == "broken\n"
        assert " safety=" in call("rollback", *w, "-s", name, check=0).stdout
        assert difference(before, snapshot(workspace)) == []


@row("`ws-ckpt rollback -w W -n N`")
def _(workspace: Path, call: Call) -> None:
    w = ("-w", workspace)
    for number in (1, 2, 3):
        edit(workspace, f"{number}\n")
        call("checkpoint", *w, f"c{number}", check=0)
    edit(workspace, "dirty\n")
    call("rollback", *w, check=0)
    assert (workspace / "src" / "main.py").read_text() == "3\n"
    told = call("rollback", *w, "-n", "1", check=0)
    assert "1 is its parent, `casnap rollback` alone goes to head" in told.stderr
    assert (workspace / "src" / "main.py").read_text() == "2\n"


@row("`ws-ckpt list --format json`")
def _(workspace: Path, call: Call) -> None:
    other = workspace.parent / "other"
    other.mkdir()
    call("checkpoint", "-w", workspace, "one", check=0)
    call("checkpoint", "-w", other, "two", check=0)

    def names(*args: str | Path, cwd: Path) -> list[str]:
        return [record["name"] for record in call("list", *args, "--format", "json", cwd=cwd, check=0).json()]

    assert names(cwd=workspace / "src") == ["one"]
    assert names("-w", other, cwd=workspace) == ["two"]
    assert sorted(names(cwd=workspace.parent)) == sorted(names("--all", cwd=workspace)) == ["one", "two"]
    assert "one" in call("list", "-w", workspace, "--format", "table", check=0).stdout


@row("`ws-ckpt diff -w W -f A -t B`")
def _(workspace: Path, call: Call) -> None:
    w = ("-w", workspace)
    call("checkpoint", *w, "a", check=0)
    (workspace / "src" / "main.py").rename(workspace / "src" / "moved.py")
    (workspace / "README").chmod(0o755)
    call("checkpoint", *w, "b", check=0)
    patch = call("diff", *w, "-f", "a", "-t", "b", check=0).stdout
    assert "rename from src/main.py\nrename to src/moved.py\n" in patch
    assert "old mode 100644\nnew mode 100755\n" in patch
    (workspace / "README").write_text("live\n")
    assert "-read me\n+live\n" in call("diff", *w, "-f", "b", check=0).stdout


@row("`ws-ckpt delete -w W -s ID --force`")
def _(workspace: Path, call: Call) -> None:
    w = ("-w", workspace)
    call("checkpoint", *w, "a", check=0)
    call("checkpoint", *w, "b", "--pin", check=0)
    assert "it is pinned" in call("delete", *w, "-s", "b", "--force", check=14).stderr
    call("unpin", *w, "b", check=0)
    call("delete", *w, "-s", "b", "--force", check=0)  # it was head
    assert call("status", *w, "--json", check=0).json()["head"]["name"] == "a"
    call("undelete", *w, "b", check=0)


@row("`ws-ckpt status -w W --format json`")
def _(workspace: Path, call: Call) -> None:
    call("checkpoint", "-w", workspace, "a", check=0)
    assert call("status", "-w", workspace, "--format", "json", check=0).json()["head"]["name"] == "a"
    assert "protected  yes" in call("status", "-w", workspace, "--format", "table", check=0).stdout


@row("`ws-ckpt cleanup -w W --keep 20`")
def _(workspace: Path, call: Call) -> None:
    w = ("-w", workspace)
    call("checkpoint", *w, "pinned", "--pin", check=0)
    for number in range(23):
        call("checkpoint", *w, f"c{number}", check=0)
    call("cleanup", *w, "--keep", "20", check=0)
    names = [record["name"] for record in call("list", *w, "--format", "json", check=0).json()]
    assert names == [*(f"c{number}" for number in range(22, 2, -1)), "pinned"]  # head is one of the 20
    assert call("cleanup", *w, "--json", check=0).json()["rule"] == "keep 20"


@row("`ws-ckpt config -w W --enable-auto-cleanup --auto-cleanup-keep 7d`")
def _(workspace: Path, call: Call) -> None:
    w = ("-w", workspace)
    call("init", *w, check=0)

    def settings() -> dict[str, object]:
        shown = call("config", "list", *w, "--json", check=0).json()["settings"]
        return {one["key"]: one["value"] for one in shown if one["key"].startswith("retention.")}

    call("config", *w, "--enable-auto-cleanup", "--auto-cleanup-keep", "7d", check=0)
    assert settings()["retention.auto"] is True
    assert settings()["retention.keep"] is None
    assert settings()["retention.max_age"] in ("7d", "604800s", 604_800)
    call("config", "-g", "--enable-auto-cleanup", "--auto-cleanup-keep", "20", check=0)
    call("config", *w, "--disable-auto-cleanup", "--auto-cleanup-keep", "5", check=0)
    assert settings()["retention.auto"] is False
    assert settings()["retention.keep"] == 5


@row("`ws-ckpt recover --all --force`")
def _(workspace: Path, call: Call) -> None:
    call("checkpoint", "-w", workspace, "a", check=0)
    call("recover", "--all", "--force", check=0)
    call("recover", "-w", workspace, "--force", check=0)
    assert len(call("list", "-w", workspace, "--format", "json", check=0).json()) == 1


@row("`ws-ckpt unregister -w W`")
def _(workspace: Path, call: Call) -> None:
    call("checkpoint", "-w", workspace, "a", check=0)
    before = snapshot(workspace)
    call("unregister", "-w", workspace, check=0)
    call("list", "-w", workspace, check=13)
    assert difference(before, snapshot(workspace)) == []
    call("init", "-w", workspace, check=0)
    assert [one["name"] for one in call("list", "-w", workspace, "--format", "json", check=0).json()] == ["a"]


ROWS["`ws-ckpt daemon`, `reload`"] = absent("daemon", "reload")


@row("`ws-ckpt plugin install --runtime R`")
def _(workspace: Path, call: Call) -> None:
    for runtime in ("openclaw", "hermes"):
        for action in ("install", "uninstall"):
            call("plugin", action, "--runtime", runtime, cwd=workspace, check=0)


@row("the skill: 保存工作区, 撤销所有修改, 显示所有保存的状态")
def _(workspace: Path, call: Call) -> None:
    call("plugin", "install", "--runtime", "hermes", cwd=workspace, check=0)
    skill = (Path(os.environ["HOME"]) / ".hermes" / "skills" / "casnap" / "SKILL.md").read_text("utf-8")
    assert [phrase in skill for phrase in ("保存工作区", "撤销所有修改", "显示所有保存的状态")] == [True] * 3


ROWS["`WS_CKPT_SOCKET`, `--socket`, `--log-level`, `--mount-path`"] = absent("daemon")
ROWS["a schedule of its own instead of cron"] = absent("schedule")


@row("planned there: agent hooks, deduplication, encryption, a signed bundle")
def _(workspace: Path, call: Call) -> None:
    absent("key", "audit")(workspace, call)
    call("init", cwd=workspace, check=0)
    run("hook", cwd=workspace, said=json.dumps({"event": "prompt", "cwd": str(workspace)}).encode(), check=0)
    assert "before the turn" in call("list", cwd=workspace, check=0).stdout
    (workspace / "one").write_bytes(os.urandom(50_000))
    (workspace / "two").write_bytes((workspace / "one").read_bytes())
    made = call("checkpoint", "--json", cwd=workspace, check=0).json()["checkpoint"]
    assert 50_000 < made["new_bytes"] < 60_000


@row("a start directory of the agent is refused")
def _(workspace: Path, call: Call) -> None:
    call("checkpoint", "a", cwd=workspace, check=0)
    edit(workspace, "broken\n")
    call("rollback", cwd=workspace / "src", check=0)
    for place in ("/", os.environ["HOME"], os.path.dirname(os.environ["HOME"])):
        call("checkpoint", "-w", place, check=14)


# -- Oh My Coder -----------------------------------------------------------------------------------------------


@row("`omc checkpoint create NAME --desc D`")
def _(workspace: Path, call: Call) -> None:
    call("create", "before-refactor", "--desc", "before the auth module changes", cwd=workspace, check=0)
    assert "before the auth module changes" in call("list", cwd=workspace, check=0).stdout
    assert re.search(r" name=ckpt-\d{8}T\d{6}Z-2 ", call("create", cwd=workspace, check=0).stdout)


@row("`omc checkpoint list`, `show NAME`, `diff NAME`")
def _(workspace: Path, call: Call) -> None:
    call("create", "v1.0", cwd=workspace, check=0)
    assert "v1.0" in call("list", cwd=workspace, check=0).stdout
    assert "name       v1.0" in call("show", "v1.0", cwd=workspace, check=0).stdout
    (workspace / "README").write_text("changed\n")
    assert "-read me\n+changed\n" in call("diff", "v1.0", cwd=workspace, check=0).stdout


@row("`omc checkpoint rollback NAME --force`")
def _(workspace: Path, call: Call) -> None:
    call("create", "v1.0", cwd=workspace, check=0)
    (workspace / "README").write_text("changed\n")
    call("rollback", "v1.0", "--force", cwd=workspace, check=0)
    assert (workspace / "README").read_text() == "read me\n"


@row("`omc checkpoint delete NAME`, `clean --keep 10`")
def _(workspace: Path, call: Call) -> None:
    for number in range(13):
        call("create", f"c{number}", cwd=workspace, check=0)
    call("delete", "c12", cwd=workspace, check=0)
    call("clean", "--keep", "10", cwd=workspace, check=0)
    names = [one["name"] for one in call("list", "--format", "json", cwd=workspace, check=0).json()]
    assert names == [f"c{number}" for number in range(11, 1, -1)]


@row("`CheckpointManager(path)`")
def _(workspace: Path, call: Call) -> None:
    manager = casnap.CheckpointManager(workspace)
    made = manager.create(name="before-refactor", description="stable before the refactor")
    assert (made.name, len(made.id), made.timestamp.tzinfo is not None) == ("before-refactor", 64, True)
    assert [one.name for one in manager.list()] == ["before-refactor"]
    (workspace / "README").write_text("changed\n")
    assert "-read me\n+changed\n" in str(manager.diff("before-refactor"))
    manager.rollback("before-refactor")
    assert (workspace / "README").read_text() == "read me\n"
    manager.delete("before-refactor")
    assert manager.list() == []
    manager.close()


@row("git state and environment in a checkpoint")
def _(workspace: Path, call: Call) -> None:
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", str(workspace)]
    subprocess.run([*git, "init", "-qb", "topic"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "c"], check=True)
    (workspace / "README").write_text("uncommitted\n")
    (workspace / ".env").write_text("TOKEN=secret\n")
    call("create", "v1", cwd=workspace, check=0)
    assert re.search(r"git +topic [0-9a-f]{40}, 1 changed path", call("show", "v1", cwd=workspace, check=0).stdout)
    assert call("cat", "v1", "README", cwd=workspace, check=0).stdout == "uncommitted\n"
    call("config", "set", "sensitive.policy", "skip", "-w", workspace, check=0)
    call("create", "v2", cwd=workspace, check=0)
    call("cat", "v2", ".env", cwd=workspace, check=13)


@row("`.omc/checkpoint.yaml`")
def _(workspace: Path, call: Call) -> None:
    pytest.importorskip("yaml")
    (workspace / ".omc").mkdir()
    text = "retention_days: 30\nmax_checkpoints: 50\nauto_checkpoint: true\nexclude:\n  - '*.tmp'\n"
    (workspace / ".omc" / "checkpoint.yaml").write_text(text)
    call("init", cwd=workspace, check=0)
    call("config", "import", ".omc/checkpoint.yaml", cwd=workspace, check=0)
    (workspace / "x.tmp").write_text("x")
    call("create", "v1", cwd=workspace, check=0)
    call("cat", "v1", "x.tmp", cwd=workspace, check=13)
    shown = call("config", "list", "--json", cwd=workspace, check=0).json()["settings"]
    assert {one["key"]: one["value"] for one in shown}["retention.keep"] == 50


@row("large files are left out")
def _(workspace: Path, call: Call) -> None:
    (workspace / "large").write_bytes(bytes(3_000_000))
    call("create", "v1", cwd=workspace, check=0)
    call("config", "set", "max_file_size", "1M", cwd=workspace, check=0)
    assert "1 too large" in call("create", "v2", cwd=workspace, check=0).stderr
    assert [
        call("show", name, "--json", cwd=workspace, check=0).json()["checkpoint"]["skipped"] for name in ("v1", "v2")
    ] == [0, 1]


@row('cron: `cd P && omc checkpoint create "daily-$(date +\\%Y\\%m\\%d)"`')
def _(workspace: Path, call: Call) -> None:
    first = call("create", "daily-20261130", "--json", cwd=workspace, check=0).json()["checkpoint"]["id"]
    assert "--replace" in call("create", "daily-20261130", cwd=workspace, check=14).stderr
    edit(workspace, "later\n")
    second = call("create", "daily-20261130", "--replace", "--json", cwd=workspace, check=0).json()["checkpoint"]
    assert call("show", "daily-20261130", "--json", cwd=workspace, check=0).json()["checkpoint"]["id"] == second["id"]
    assert call("show", "1", "--json", cwd=workspace, check=0).json()["checkpoint"]["id"] == first


# -- pitrrwnd --------------------------------------------------------------------------------------------------


@row("`pitr init -C W`")
def _(workspace: Path, call: Call) -> None:
    call("init", "-C", workspace, check=0)
    call("init", "--root", workspace, check=0)
    assert sorted(os.listdir(workspace)) == ["README", "src"]


@row("`pitr savepoint --label L`")
def _(workspace: Path, call: Call) -> None:
    first = call("savepoint", "--label", "before risky refactor", cwd=workspace, check=0).stdout
    assert re.match(r"checkpoint step=1 name=\S+ id=[0-9a-f]{12} digest=[0-9a-f]{12} ", first)
    assert "before risky refactor" in call("list", cwd=workspace, check=0).stdout


@row("`pitr rewind --step N`, `-s N`")
def _(workspace: Path, call: Call) -> None:
    call("savepoint", cwd=workspace, check=0)
    for option in ("--step", "-s"):
        edit(workspace, "broken\n")
        call("rewind", option, "1", cwd=workspace, check=0)
        assert (workspace / "src" / "main.py").read_text() == "print('one')\n"


@row("`pitr rewind --to TIME`")
def _(workspace: Path, call: Call) -> None:
    made = call("savepoint", "--json", cwd=workspace, check=0).json()["checkpoint"]
    edit(workspace, "later\n")
    call("savepoint", cwd=workspace, check=0)
    call("rewind", "--to", made["created"], cwd=workspace, check=0)
    assert (workspace / "src" / "main.py").read_text() == "print('one')\n"
    call("rewind", "--to", "2001-01-01", cwd=workspace, check=13)


@row("`pitr verify --step N`")
def _(workspace: Path, call: Call) -> None:
    call("savepoint", cwd=workspace, check=0)
    call("verify", "--step", "1", cwd=workspace, check=0)
    (workspace / "README").write_text("broken\n")
    (workspace / "src" / "main.py").unlink()
    (workspace / "junk.txt").write_text("junk")
    found = call("verify", "--step", "1", cwd=workspace, check=4).stdout.splitlines()
    assert found == ["M README  (content)", "A junk.txt", "D src/main.py"]


@row("`pitr log`")
def _(workspace: Path, call: Call) -> None:
    call("savepoint", "--label", "x", cwd=workspace, check=0)
    call("verify", "--step", "1", cwd=workspace, check=0)
    operations = [one["operation"] for one in call("log", "--format", "json", cwd=workspace, check=0).json()]
    assert operations == ["verify", "checkpoint", "register"]


ROWS["`pitr watch`"] = absent("watch")
ROWS["`pitr audit-export -o FILE`"] = absent("audit-export")


# -- what their pages show, as a stranger scripts it -----------------------------------------------------------

SCRIPTS = {
    "ws-ckpt": """
        casnap init -w P
        casnap checkpoint -w P -s snap-001 -m "before refactor"
        echo work > P/work; casnap checkpoint -w P -s snap-002; echo more > P/work; casnap checkpoint -w P -s snap-003
        casnap list -w P ; casnap list -w P --format json
        casnap diff -w P -f snap-001 -t snap-002
        casnap rollback -w P -s snap-001 --preview ; test -e P/work
        casnap rollback -w P -s snap-001 ; test ! -e P/work
        casnap rollback -w P -s snap-003 ; casnap rollback -w P -n 2 ; test ! -e P/work
        casnap cleanup -w P --keep 20
        casnap config -w P --enable-auto-cleanup --auto-cleanup-keep 7d
        casnap config -g --enable-auto-cleanup --auto-cleanup-keep 20
        casnap rollback -w P -s snap-003
        casnap delete -w P -s snap-001 --force ; casnap status -w P --format json ; casnap recover --all --force
    """,
    "oh-my-coder": """
        cd P
        casnap create "before-auth-refactor" --desc "before the auth module changes"
        echo work > work
        casnap delete "before-auth-refactor"
        casnap create "before-auth-refactor" ; echo broken > work ; casnap rollback "before-auth-refactor"
        grep -q work work
        casnap create "approach-a" ; echo b > work ; casnap create "approach-b" ; casnap rollback "approach-a"
        grep -q work work
        casnap delete "approach-b"
        casnap create ; casnap create "v1.0"; casnap show "v1.0" ; casnap diff "v1.0"
        casnap rollback "v1.0" --force ; casnap clean --keep 10
        casnap create "daily-$(date +%Y%m%d)"
        casnap create "daily-$(date +%Y%m%d)" && exit 1 || test $? = 14
        casnap create "daily-$(date +%Y%m%d)" --replace
    """,
    "pitrrwnd": """
        mkdir P/db; echo port=1 > P/app.conf; echo data > P/db/store.db
        cd P && casnap init && casnap savepoint --label "before risky refactor" | grep "step=1 .* digest="
        echo port=2 > app.conf; rm db/store.db; echo junk > junk.txt
        casnap verify --step 1 && exit 1 || test $? = 4
        casnap rewind --step 1 ; casnap verify --step 1
        casnap savepoint --label next | grep step=2
        casnap log
    """,
}


@pytest.mark.parametrize("system", SCRIPTS)
def test_the_commands_of_its_own_page_work_without_a_terminal(system: str, workspace: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "casnap").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m casnap "$@"\n')
    (programs / "casnap").chmod(0o755)
    workspace.rename(tmp_path / "P")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", SCRIPTS[system]],
        cwd=tmp_path,
        env=environment({"PATH": f"{programs}:{os.environ['PATH']}"}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_restore_with_a_target_writes_elsewhere(history: Path, tmp_path: Path, call: Call) -> None:
    before = snapshot(history)
    call("restore", "c1", "--target", tmp_path / "out", cwd=history, check=0)
    assert (tmp_path / "out" / "src" / "main.py").read_text() == "print('one')\n"
    assert snapshot(history) == before
    call("rollback", "c1", "--target", tmp_path / "out2", cwd=history, check=2)
