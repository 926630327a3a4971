"""``casnap hook``, as agents run it: a process, an event on its standard input, and no patience."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli import PATIENCE, Result, environment, run

AGENT = "claude-code"


@pytest.fixture
def project(home: Path) -> Path:
    """A git work tree with a file, which casnap does not know."""
    place = home / "project"
    (place / ".git").mkdir(parents=True)
    (place / "file").write_text("one\n")
    return place


def event(name: str, place: str | Path, **more: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": "s1", "prompt_id": "p1", "cwd": str(place), **more}


def prompt(place: str | Path, **more: Any) -> dict[str, Any]:
    return event("UserPromptSubmit", place, **{"prompt": "make a file", **more})


def tool(place: str | Path, name: str = "Bash", **more: Any) -> dict[str, Any]:
    return event("PreToolUse", place, tool_name=name, **more)


def tell(payload: Any, *words: str, env: dict[str, str] | None = None, check: int = 0) -> Result:
    """Run the hook; it never says anything on standard output."""
    said = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    result = run("hook", *words, said=said, env=env, cwd="/", check=check)
    assert result.stdout == ""
    return result


def checkpoints(place: Path) -> list[dict[str, Any]]:
    """Oldest first."""
    result = run("list", "-w", place, "--reverse", "--json")
    return result.json()["checkpoints"] if result.status == 0 else []


def hooks(place: Path, env: dict[str, str] | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("status", "--json", cwd=place, env=env, check=0).json()["hooks"]
    return found


def words_of(file: Path) -> list[bytes]:
    return file.read_bytes().split(b"\0")


def until(true: Any) -> None:
    """Wait for work that nobody waits for."""
    give_up = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < give_up, "it never came to be"
        time.sleep(0.02)


@contextlib.contextmanager
def locked(place: Path) -> Iterator[None]:
    """Keep everybody from making a checkpoint of a workspace."""
    workspace = run("status", "-w", place, "--json", check=0).json()["workspace"]["id"]
    path = Path(os.environ["CASNAP_STORE"]) / "locks" / f"workspace-{workspace}.lock"
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# -- when a checkpoint is taken ------------------------------------------------------------------------------


def test_a_turn_has_a_checkpoint_from_before_it_one_before_its_first_tool_and_one_after_it(project: Path) -> None:
    tell(prompt(project), "--agent", AGENT)
    (project / "file").write_text("the person was quick\n")
    tell(tool(project), "--agent", AGENT)
    (project / "file").write_text("two\n")
    tell(tool(project, "Edit"), "--agent", AGENT)
    (project / "file").write_text("three\n")
    tell(event("Stop", project), "--agent", AGENT)
    found = checkpoints(project)
    assert [(one["message"], one["origin"]["tool"]) for one in found] == [
        ("before the turn", ""),
        ("before Bash", "Bash"),
        ("after the turn", ""),
    ]
    assert {(one["origin"]["agent"], one["origin"]["session"], one["origin"]["turn"]) for one in found} == {
        (AGENT, "s1", "p1")
    }
    assert [run("cat", str(step), "file", cwd=project).stdout for step in (1, 2, 3)] == [
        "one\n",
        "the person was quick\n",
        "three\n",
    ]


def test_a_tree_that_has_not_changed_makes_no_checkpoint(project: Path) -> None:
    for payload in (prompt(project), tool(project), event("Stop", project), prompt(project, prompt_id="p2")):
        tell(payload)
    assert len(checkpoints(project)) == 1


def test_a_tool_that_only_reads_is_not_looked_at(project: Path) -> None:
    tell(prompt(project))
    (project / "file").write_text("two\n")
    tell(tool(project, "Read"))
    assert len(checkpoints(project)) == 1


def test_a_prompt_that_is_told_twice_is_seen_to_once(project: Path) -> None:
    tell(prompt(project))
    (project / "file").write_text("two\n")
    tell(prompt(project))
    assert len(checkpoints(project)) == 1


@pytest.mark.parametrize("session", ["main", ""])
def test_a_session_of_one_agent_is_none_of_another_that_calls_its_own_the_same(session: str, project: Path) -> None:
    for number, agent in enumerate(("codex", "hermes")):
        (project / "file").write_text(f"{number}\n")
        tell({"event": "before_tool", "session": session, "tool": "exec", "cwd": str(project)}, "--agent", agent)
    assert [one["origin"]["agent"] for one in checkpoints(project)] == ["codex", "hermes"]


def test_an_event_of_a_directory_in_a_workspace_is_of_that_workspace(project: Path) -> None:
    (project / "src" / "deep").mkdir(parents=True)
    tell(prompt(project / "src" / "deep"))
    assert [one["message"] for one in checkpoints(project)] == ["before the turn"]


def test_each_root_of_an_agent_gets_its_checkpoint(project: Path, home: Path) -> None:
    other = home / "other"
    (other / ".git").mkdir(parents=True)
    tell(
        {
            "cursor_version": "3",
            "hook_event_name": "beforeSubmitPrompt",
            "workspace_roots": [str(project), str(other)],
        }
    )
    assert [len(checkpoints(place)) for place in (project, other)] == [1, 1]


def test_a_workspace_that_is_named_goes_before_what_the_event_says(project: Path, home: Path) -> None:
    tell(prompt(home / "nowhere"), "-w", str(project))
    assert len(checkpoints(project)) == 1


def test_the_label_is_off_and_once_on_it_holds_no_secret(project: Path) -> None:
    tell(prompt(project, prompt="use sk-abcdefgh12345678 please"))
    (project / "file").write_text("two\n")
    env = {"CASNAP_HOOK_LABEL": "true"}
    tell(prompt(project, prompt_id="p2", prompt="use sk-abcdefgh12345678 please"), env=env)
    assert [one["message"] for one in checkpoints(project)] == [
        "before the turn",
        "before the turn: use [hidden] please",
    ]
    for path in Path(os.environ["HOME"]).rglob("*"):
        assert not path.is_file() or b"sk-abcdefgh" not in path.read_bytes()


def test_switched_off_for_a_workspace_it_does_nothing_there(project: Path) -> None:
    run("init", cwd=project, check=0)
    run("config", "set", "auto_checkpoint", "false", cwd=project, check=0)
    tell(prompt(project))
    assert checkpoints(project) == []
    run("config", "unset", "auto_checkpoint", cwd=project, check=0)
    tell(prompt(project, prompt_id="p2"))
    assert len(checkpoints(project)) == 1


# -- which directories become workspaces ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "in_git", "elsewhere"),
    [("project", 1, 0), ("always", 1, 1), ("never", 0, 0)],
    ids=["project", "always", "never"],
)
def test_which_directories_a_hook_registers_is_configured(
    rule: str, in_git: int, elsewhere: int, project: Path, home: Path
) -> None:
    (home / "plain").mkdir()
    for place in (project, home / "plain"):
        tell(prompt(place), env={"CASNAP_HOOK_AUTO_INIT": rule})
    assert [len(checkpoints(place)) for place in (project, home / "plain")] == [in_git, elsewhere]
    refused = {one["directory"] for one in hooks(home) if one["failure"] and one["failure"]["refused"]}
    assert refused == {str(place) for place, had in ((project, in_git), (home / "plain", elsewhere)) if not had}


@pytest.mark.parametrize("git", [False, True], ids=["plain", "as a git work tree"])
def test_it_never_registers_home_the_root_or_the_directory_of_temporary_files(
    git: bool, home: Path, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    for place in (home, temporary):
        (place / ".git").mkdir(parents=True) if git else place.mkdir(exist_ok=True)
    env = {"CASNAP_HOOK_AUTO_INIT": "always", "TMPDIR": str(temporary)}
    for place in ("/", str(home), str(home.parent), "/tmp", "/var/tmp", str(temporary)):
        result = tell(prompt(place), env=env)
        assert "casnap: cannot protect" in result.stderr
    shown = run("status", cwd=tmp_path, env=env, check=0)
    assert "note: the hook of claude-code was refused at " in shown.stderr
    assert f"cannot protect {temporary}: everybody's temporary files are in it" in shown.stderr
    assert run("status", "--json", cwd=tmp_path, env=env, check=0).json().get("workspaces", []) == []


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("/proc", "a pseudo file system (proc)"),
        ("/proc/self/../1/task", "a pseudo file system (proc)"),
        ("/sys", "a pseudo file system (sysfs)"),
        ("/sys/kernel", "a pseudo file system (sysfs)"),
        ("/dev", ""),
        ("/dev/pts", "a pseudo file system (devpts)"),
        ("/dev/fd/../task", "a pseudo file system (proc)"),
        ("/dev/shm", "everybody's temporary files"),
    ],
)
def test_it_never_registers_what_holds_no_files_of_anybody(place: str, reason: str, home: Path) -> None:
    result = tell(prompt(place), env={"CASNAP_HOOK_AUTO_INIT": "always"})
    assert "casnap: cannot protect /" in result.stderr
    assert reason in result.stderr
    (notes,) = hooks(home)
    assert notes["failure"]["refused"]
    assert run("status", "--json", cwd=home, check=0).json().get("workspaces", []) == []


def test_a_directory_of_ones_own_in_shared_memory_is_registered() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        tell(prompt(place), env={"CASNAP_HOOK_AUTO_INIT": "always"})
        assert len(checkpoints(Path(place))) == 1


# -- whatever happens ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said", [b"", b"no json", b"[]", b"{}", b'{"hook_event_name": "PreToolUse"}', b"\xff\xfe", b"\xef\xbb\xbf{"]
)
def test_what_makes_no_sense_is_no_failure_and_shows_in_status(said: bytes, project: Path) -> None:
    run("init", cwd=project, check=0)
    result = run("hook", "--agent", AGENT, said=said, cwd=project, check=0)
    assert result.stdout == ""
    if b"PreToolUse" in said or said != b"{}":
        (failure,) = [one["failure"] for one in hooks(project) if one["failure"]]
        assert failure["agent"] == AGENT
        assert failure["message"].startswith("cannot ")
        assert failure["message"] in run("status", cwd=project, check=0).stderr


@pytest.mark.parametrize(
    "place", ["relative", "/a\0b", "/\ud800", "/" + "a" * 100_000, "", "/proc/self/mem", "/dev/null", "/etc/passwd/x"]
)
def test_a_directory_that_cannot_be_one_is_no_failure_and_shows_in_status(place: str, project: Path) -> None:
    result = run("hook", said=json.dumps(prompt(place)).encode(), cwd=project, check=0)
    assert result.stdout == ""
    assert result.stderr.startswith("casnap: ")
    assert re.search(r"the hook of \S+ (took no checkpoint|was refused) at ", failed(project))


def test_what_nobody_expected_is_no_failure_and_shows_in_status(project: Path) -> None:
    program = """
import sys
from casnap.agents import hook
def broken(*arguments):
    raise ZeroDivisionError("of all things")
hook.Hook.see_to = broken
from casnap.cli import main
main()
"""
    words = [sys.executable, "-P", "-c", program, "hook"]
    said = json.dumps(prompt(project)).encode()
    done = subprocess.run(words, input=said, env=environment(), cwd=project, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert "ZeroDivisionError: of all things" in run("status", cwd=project, check=0).stderr


@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_stop_nothing(streams: str, project: Path) -> None:
    said = json.dumps(prompt(project))
    command = f'printf %s "$1" | "$2" -P -m casnap hook {streams}'
    done = subprocess.run(
        ["sh", "-c", command, "sh", said, sys.executable],
        env=environment(),
        cwd=project,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert len(checkpoints(project)) == ("<&-" not in streams)


def test_a_mistake_on_its_command_line_is_none_of_the_agents_business(project: Path) -> None:
    for words in (("--bogus",), ("extra",), ("--agent",), ("--json", "--bogus"), ("--store", "", "--bogus")):
        assert tell(prompt(project), *words).stderr.startswith("error: ")


def test_a_configuration_that_makes_no_sense_shows_in_status(project: Path, home: Path) -> None:
    file = home / ".config" / "casnap" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[hook]\nlabel = 5\n")
    assert "bad hook.label 5" in tell(prompt(project)).stderr
    file.unlink()
    assert "bad hook.label 5" in run("status", cwd="/", check=0).stderr


def test_a_store_of_somebody_else_or_none_at_all_shows_in_status(project: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory\n")
    env = {"CASNAP_STORE": str(tmp_path / "file" / "store")}
    assert "casnap: cannot" in tell(prompt(project), env=env).stderr
    shown = run("status", cwd=project, env=env)
    assert "took no checkpoint" in shown.stderr or "cannot" in shown.stderr
    if os.geteuid() == 0:
        foreign = tmp_path / "foreign"
        run("checkpoint", cwd=project, env={"CASNAP_STORE": str(foreign)}, check=0)
        os.chown(foreign, 12345, 12345)
        env = {"CASNAP_STORE": str(foreign)}
        assert "casnap: cannot" in tell(prompt(project, prompt_id="p2"), env=env).stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    target = tmp_path / "disk"
    target.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", target], check=True)
    yield target
    subprocess.run(["umount", "-l", target], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_full_disk_shows_in_status(project: Path, small_disk: Path) -> None:
    env = {"CASNAP_STORE": str(small_disk / "store"), "XDG_STATE_HOME": str(small_disk / "state")}
    run("checkpoint", cwd=project, env=env, check=0)
    (project / "file").write_bytes(os.urandom(1_000_000))
    with (small_disk / "filler").open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    assert "casnap: cannot" in tell(prompt(project), env=env).stderr
    assert "took no checkpoint" in run("status", cwd=project, env=env, check=0).stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_home_that_cannot_be_written_shows_in_status(project: Path, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    env = {"HOME": str(small_disk), "CASNAP_STORE": str(small_disk / "store"), "XDG_STATE_HOME": ""}
    assert "casnap: cannot" in tell(prompt(project), env=env).stderr
    shown = run("status", cwd=project, env=env, check=0).stderr
    assert "took no checkpoint" in shown
    assert str(small_disk / "store") in shown


def test_a_failure_is_forgotten_once_it_has_gone_well(project: Path) -> None:
    tell(prompt(project), env={"CASNAP_HOOK_AUTO_INIT": "never"})
    assert "was refused" in run("status", cwd=project, check=0).stderr
    tell(prompt(project, prompt_id="p2"))
    assert "hook" not in run("status", cwd=project, check=0).stderr
    assert run("status", cwd=project, check=0).stdout.splitlines()[-1].split()[:2] == ["hooks", AGENT]


def failed(place: Path) -> str:
    """What the status at a place says of hooks that took no checkpoint."""
    return "\n".join(line for line in run("status", cwd=place, check=0).stderr.splitlines() if " hook " in line)


@pytest.mark.parametrize(("wrong", "well"), [("src", "."), (".", "src"), ("src", "docs"), ("src/gone", "src")])
def test_what_goes_well_anywhere_in_a_workspace_outdates_what_went_wrong_in_it(
    wrong: str, well: str, project: Path
) -> None:
    for name in ("src", "docs"):
        (project / name).mkdir()
    run("init", cwd=project, check=0)
    tell(prompt(project / wrong), env={"CASNAP_GIT": "junk"})
    with broken_store():
        tell(prompt(project / wrong))
    assert "took no checkpoint" in failed(project)
    tell(prompt(project / well, prompt_id="p2"))
    assert failed(project) == ""
    assert [one["failure"] for one in hooks(project)] == [None] * len(hooks(project))
    assert not [one for one in run("doctor", "--json").json()["findings"] if one["subject"].startswith("hook")]


@contextlib.contextmanager
def broken_store() -> Iterator[None]:
    """A store that cannot be opened, as long as it lasts."""
    log = Path(os.environ["CASNAP_STORE"]) / "oplog"
    log.rename(log.with_name("away"))
    try:
        yield
    finally:
        log.with_name("away").rename(log)


def test_what_went_wrong_shows_in_the_workspace_that_it_concerns_and_in_no_other(project: Path, home: Path) -> None:
    inner, other, plain = project / "inner", home / "other", home / "plain"
    for place in (inner, other, plain):
        place.mkdir()
    for place in (project, inner, other):
        run("init", "-w", place, check=0)
    with broken_store():
        tell(prompt(project / "src"))
    tell(prompt(plain))
    tell(prompt(home))
    assert f" in {project / 'src'}: cannot" in failed(project)
    assert failed(project).count("\n") == 0
    assert failed(inner) == failed(other) == ""
    assert [one["directory"] for one in hooks(other)] == []
    tell(prompt(inner))  # says nothing of the workspace around it
    assert "took no checkpoint" in failed(project)
    for place in (str(plain), f"no workspace at {home}: ", str(project / "src")):
        assert place in failed(home)
        assert place in run("doctor").stdout


def test_the_root_of_the_workspace_is_not_named(project: Path) -> None:
    run("init", cwd=project, check=0)
    run("hook", "--agent", AGENT, said=b"no json", cwd=project, check=0)
    assert str(project) not in failed(project)
    assert "took no checkpoint" in failed(project)


def test_a_directory_that_was_refused_is_none_any_more_once_it_is_protected(project: Path) -> None:
    env = {"CASNAP_HOOK_AUTO_INIT": "never"}
    tell(prompt(project), env=env)
    assert failed(project).startswith("note: the hook of claude-code was refused at ")
    assert "hooks register none" in failed(project)
    doctor = [one for one in run("doctor", "--json").json()["findings"] if one["subject"] == f"hook in {project}"]
    assert [(one["grade"], one["said"].startswith("was refused at ")) for one in doctor] == [("note", True)]
    run("init", cwd=project, check=0)
    assert failed(project) == ""
    assert f"hook in {project}" not in run("doctor").stdout


def test_a_broken_configuration_is_told_everywhere_until_something_goes_well(project: Path, home: Path) -> None:
    other = home / "other"
    (other / ".git").mkdir(parents=True)
    for place in (project, other):
        run("init", cwd=place, check=0)
    tell(prompt(project), env={"CASNAP_GIT": "junk"})
    for place in (project, other, home):
        assert "bad CASNAP_GIT 'junk'" in failed(place)
    assert [one["directory"] for one in hooks(other)] == [None]
    assert "hooks: took no checkpoint at " in run("doctor", check=1).stdout
    tell(prompt(other))
    assert failed(project) == failed(other) == failed(home) == ""
    assert None not in [one["directory"] for one in hooks(project)]
    assert "took no checkpoint" not in run("doctor").stdout


def test_a_failure_of_long_ago_is_no_news(project: Path) -> None:
    run("init", cwd=project, check=0)
    run("hook", "--agent", AGENT, said=b"no json", cwd=project, check=0)
    (file,) = (Path(os.environ["HOME"]) / ".local" / "state" / "casnap" / "hooks").glob("*.json")
    notes = json.loads(file.read_text())
    for days, is_told in ((6, True), (8, False)):
        notes["failure"]["time"] = time.time_ns() - days * 86_400 * 10**9
        file.write_text(json.dumps(notes))
        assert ("took no checkpoint" in failed(project)) == is_told
        assert ("took no checkpoint" in run("doctor", check=1).stdout) == is_told


@pytest.mark.parametrize("length", [4_000, 10_000, 100_000])
def test_what_is_long_is_short_for_a_person_and_whole_for_a_program(length: int, home: Path) -> None:
    place = str(home / ("a" * length))
    shown = [tell(prompt(place)).stderr, run("status", cwd=home, check=0).stderr, run("doctor").stdout]
    for text in shown:
        assert "it is in no git work tree" in text
        assert max(map(len, text.splitlines())) < 1_000
    (notes,) = hooks(home)
    assert notes["directory"] == place
    assert place in notes["failure"]["message"]


def test_a_directory_whose_name_is_no_text_is_one_like_any_other(home: Path) -> None:
    real, link = os.fsencode(home) + b"/\xff\\", home / "link"
    os.makedirs(real + b"/.git")
    link.symlink_to(os.fsdecode(real))
    tell(prompt(link))
    assert len(checkpoints(link)) == 1
    (notes,) = hooks(link)
    assert (notes["directory"], notes["workspace"]) == (f"{home}/\\xff\\\\",) * 2
    run("hook", said=b"no json", cwd=os.fsdecode(real), check=0)
    assert "took no checkpoint" in failed(link)


@pytest.mark.parametrize(
    ("words", "payload", "status", "stdout"),
    [
        ((), prompt("/"), 2, ""),
        ((), tool("/"), 2, ""),
        ((), tool("/", "Read"), 0, ""),
        ((), event("Stop", "/"), 0, ""),
        ((), event("SessionEnd", "/"), 0, ""),
        (("--agent", "hermes"), {"event": "before_tool", "cwd": "/"}, 2, '{"decision": "block", "reason": '),
        (
            ("--agent", "cline"),
            {"hookName": "tool_call", "workspaceRoots": ["/"]},
            0,
            '{"cancel": true, "errorMessage": ',
        ),
        ((), "no object", 2, ""),
    ],
)
def test_required_it_keeps_a_tool_from_running_without_a_checkpoint(
    words: tuple[str, ...], payload: Any, status: int, stdout: str
) -> None:
    result = run("hook", "--require", *words, said=json.dumps(payload).encode(), cwd="/", check=status)
    assert result.stdout.startswith(stdout)
    assert bool(result.stdout) == bool(stdout)


@pytest.mark.parametrize(
    ("words", "env"), [(["--bogus"], {}), ([], {"CASNAP_HOOK_DEADLINE": "junk"}), (["--store", ""], {})]
)
@pytest.mark.parametrize(
    ("payload", "status"),
    [(tool("/x"), 2), (prompt("/x"), 2), (event("Stop", "/x"), 0), (event("SessionEnd", "/x"), 0)],
)
def test_required_a_mistake_holds_up_tools_and_prompts_and_never_the_end_of_a_turn(
    words: list[str], env: dict[str, str], payload: dict[str, Any], status: int
) -> None:
    tell(payload, "--require", *words, env=env, check=status)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_required_it_holds_a_tool_up_also_where_nothing_can_be_remembered(project: Path) -> None:
    places = ["/", "/dev/shm", "/tmp", "/var/tmp"]
    mounts = "".join(f"mount --bind {place} {place} && mount -o remount,ro,bind {place} && " for place in places)
    said = json.dumps(prompt(project)).encode()
    words = [sys.executable, "-P", "-m", "casnap", "hook", "--require"]
    command = ["unshare", "-m", "sh", "-c", f'{mounts} exec "$@"', "sh", *words]
    done = subprocess.run(command, input=said, env=environment(), cwd="/", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"casnap: cannot ")


def test_required_it_lets_a_tool_run_once_there_is_a_checkpoint(project: Path) -> None:
    for payload in (prompt(project), tool(project), tool(project, "Edit"), prompt(project, prompt_id="p2")):
        tell(payload, "--require")
    assert len(checkpoints(project)) == 1


# -- time ----------------------------------------------------------------------------------------------------


def test_past_its_deadline_the_checkpoint_goes_on_and_the_next_event_finds_it(project: Path) -> None:
    run("init", cwd=project, check=0)
    env = {"CASNAP_HOOK_DEADLINE": "1"}
    with locked(project):
        result = tell(prompt(project), "--require", env=env, check=2)
        assert "it is being taken" in result.stderr
        assert [one["at_work"] for one in hooks(project)] == [True]
    until(lambda: checkpoints(project))
    until(lambda: not any(one["at_work"] for one in hooks(project)))
    tell(tool(project), "--require", env=env)
    assert [one["message"] for one in checkpoints(project)] == ["before the turn"]


def test_at_the_end_of_a_session_nobody_waits(project: Path) -> None:
    run("init", cwd=project, check=0)
    with locked(project):
        tell(event("SessionEnd", project))
        assert checkpoints(project) == []
    until(lambda: [one["message"] for one in checkpoints(project)] == ["at the end of the session"])


def test_a_hook_that_was_killed_shows_in_status_and_keeps_nobody_waiting(project: Path) -> None:
    run("init", cwd=project, check=0)
    with locked(project):
        tell(prompt(project), env={"CASNAP_HOOK_DEADLINE": "1"})
        home = b"HOME=" + os.fsencode(os.environ["HOME"])
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if b"hook" in words_of(process / "cmdline") and home in words_of(process / "environ"):
                    os.kill(int(process.name), signal.SIGKILL)
    until(lambda: "was killed" in run("status", cwd=project, check=0).stderr)
    tell(prompt(project, prompt_id="p2"))
    assert len(checkpoints(project)) == 1
    assert "was killed" not in run("status", cwd=project, check=0).stderr


COUNTED = """
import os, sys
from casnap.agents import taking
from casnap.cli import main

take = taking.take
def counted(*arguments):
    os.write(int(os.environ["COUNT_TO"]), b".")
    return take(*arguments)

taking.take = counted
main()
"""


def test_calls_that_wait_for_one_accept_what_it_sees(project: Path) -> None:
    run("init", cwd=project, check=0)
    ours, theirs = os.pipe()
    command = [sys.executable, "-P", "-c", COUNTED, "hook"]
    env = environment({"COUNT_TO": str(theirs)})
    said = json.dumps(event("Stop", project)).encode()
    with locked(project):
        calls = [subprocess.Popen(command, stdin=subprocess.PIPE, env=env, pass_fds=[theirs]) for _ in range(8)]
        for call in calls:
            assert call.stdin is not None
            call.stdin.write(said)
            call.stdin.close()
        os.close(theirs)
        assert os.read(ours, 1) == b"."
        time.sleep(1)  # so that the others wait; if they do not yet, the test proves less, and does not fail
    assert [call.wait(PATIENCE) for call in calls] == [0] * 8
    looks = 1 + len(os.read(ours, 100))
    os.close(ours)
    assert looks <= 3
    assert len(checkpoints(project)) == 1
