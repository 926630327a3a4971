"""Agents are set up and taken back in any order, by casnaps in any place, while people edit: what they have stays."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from casnap.agents.installing import apply
from casnap.agents.installing.command import HookCommand
from casnap.agents.installing.runtime import Runtime, Surroundings
from casnap.agents.installing.runtimes import RUNTIMES

AGENTS = [("claude-code", "user"), ("claude-code", "project"), ("hermes", "user"), ("openclaw", "user")]

PROGRAMS = st.sampled_from([["/x/casnap"], ["/my tools/casnap"], ["/usr/bin/python3", "-m", "casnap"]])

STEPS = st.lists(
    st.tuples(st.just("install"), st.sampled_from(AGENTS), PROGRAMS)
    | st.tuples(st.just("uninstall"), st.sampled_from(AGENTS))
    | st.tuples(st.just("edit"), st.integers(0, 3)),
    max_size=8,
)

HANDLERS = st.sampled_from(
    [
        {"type": "command", "command": "lint"},
        {"type": "command", "command": "casnap hook || true"},
        {"type": "command", "command": "/x/casnap", "args": ["hook"]},
        {"type": "command", "command": "/x/casnap hook --agent claude-code"},
    ]
)
GROUPS = st.lists(st.lists(HANDLERS, min_size=1, max_size=2).map(lambda handlers: {"hooks": handlers}), max_size=2)
HOOKS = st.dictionaries(st.sampled_from(["Stop", "PreToolUse", "Notification"]), GROUPS, min_size=1, max_size=2)
SETTINGS = st.none() | st.builds(
    lambda hooks, indent: json.dumps({"model": "m", **({} if hooks is None else {"hooks": hooks})}, indent=indent),
    st.none() | HOOKS,
    st.sampled_from([2, 4, "\t"]),
)
LISTS = st.sampled_from(["", "plugins:\n  enabled:\n    - casnap\n    - other\n", "plugins:\n  enabled: [other]\n"])
DIRECTORIES = st.lists(
    st.sampled_from([".claude/skills/casnap", ".hermes/plugins/casnap", ".openclaw/skills", ".local/share", "own"])
)


@contextmanager
def home(texts: dict[str, str | None], directories: list[str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        root = Path(os.path.realpath(place))
        for name in directories:
            (root / name).mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            if text is not None:
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(text)
        yield root


def picture(root: Path) -> dict[str, str | None]:
    return {
        str(path.relative_to(root)): path.read_text() if path.is_file() else None for path in sorted(root.rglob("*"))
    }


def runtime(root: Path, agent: tuple[str, str]) -> Runtime:
    name, scope = agent
    around = Surroundings(root, {"PATH": str(root)}, root, root / ".local" / "share" / "casnap-plugins")
    return RUNTIMES[name](around, scope)


def act(root: Path, step: tuple[Any, ...]) -> None:
    one = runtime(root, step[1])
    installs = step[0] == "install"
    plan = one.install_plan(HookCommand(step[2])) if installs else one.uninstall_plan()
    (apply.install if installs else apply.uninstall)(plan, one.around.records, one.key, lambda command: None)
    assert not (one.install_plan(HookCommand(step[2])) if installs else one.uninstall_plan()).needed


def edit(root: Path, number: int, texts: dict[str, str | None]) -> None:
    """What a person may do at any time, done to the files, and to what they are to be in the end."""
    name, old, new = [
        (".claude/settings.json", '"m', f'"m{number}'),
        (".claude/settings.local.json", '"m', f'"m{number}'),
        (".hermes/config.yaml", "# mine\n", f"# mine\n# {number}\n"),
        (".hermes/config.yaml", "a: 1\n", f"a: 1\nb{number}: {{}}\n"),
    ][number]
    text = texts[name]
    if text is not None and f"b{number}" not in text:
        path = root / name
        path.write_text(path.read_text().replace(old, new, 1))
        texts[name] = text.replace(old, new, 1)


@settings(max_examples=40)
@given(SETTINGS, SETTINGS, LISTS, DIRECTORIES, STEPS)
def test_in_the_end_there_is_what_people_had_and_wrote(
    user: str | None, local: str | None, plugins: str, directories: list[str], steps: list[tuple[Any, ...]]
) -> None:
    texts = {
        ".claude/settings.json": user,
        ".claude/settings.local.json": local,
        ".hermes/config.yaml": f"# mine\na: 1\n{plugins}",
    }
    with home(texts, directories) as root:
        was = picture(root)
        for step in steps:
            if step[0] == "edit":
                edit(root, step[1], texts)
            elif step[0] == "install" or runtime(root, step[1]).record.files:
                act(root, step)
        for agent in AGENTS:
            if runtime(root, agent).record.files:
                act(root, ("uninstall", agent))
        assert picture(root) == was | {name: text for name, text in texts.items() if text is not None}
