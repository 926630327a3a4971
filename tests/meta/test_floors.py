"""Which room may do what: import-linter holds who imports whom, this holds what they do to the world."""

from __future__ import annotations

import ast
import re
import subprocess

import pytest

from support.source import CHECKOUT, PACKAGE, ambient, long_pieces, modules, parse, writes

MODULE_LINES, CLASS_LINES, FUNCTION_LINES = 400, 250, 50

MAY_WRITE = ("fs/",)
MAY_LOOK_AROUND = ("settings/", "cli/", "agents/plugins/")  # the last of these run inside agents, without the others
MAY_WAIT = {"fs/locks.py": {"time.monotonic", "time.sleep"}}


@pytest.mark.parametrize("module", modules())
def test_only_the_fs_room_writes_to_a_disk(module: str) -> None:
    if not module.startswith(MAY_WRITE):
        assert [str(finding) for finding in writes(parse(module))] == []


@pytest.mark.parametrize("module", modules())
def test_only_settings_and_cli_read_environment_clock_and_terminal(module: str) -> None:
    if not module.startswith(MAY_LOOK_AROUND):
        allowed = MAY_WAIT.get(module, set())
        assert [str(finding) for finding in ambient(parse(module)) if finding.what not in allowed] == []


@pytest.mark.parametrize("module", modules())
def test_a_module_a_class_and_a_function_stay_small(module: str) -> None:
    lines = len((PACKAGE / module).read_text("utf-8").splitlines())
    assert lines <= MODULE_LINES
    too_long = long_pieces(parse(module), function=FUNCTION_LINES, klass=CLASS_LINES)
    assert [str(finding) for finding in too_long] == []


def test_no_room_is_a_drawer_for_everything() -> None:
    drawers = re.compile(r"(^|/|_)(utils?|helpers?|common|misc)(/|\.py$)")
    assert [module for module in modules() if drawers.search(module)] == []


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.fsync(3)",
        "import os as system\nsystem.replace('a', 'b')",
        "from os import unlink as away\naway('a')",
        "import os\nact = os.rename",
        "import os\nos.open('a', os.O_RDONLY | os.O_CREAT)",
        "import shutil\nshutil.rmtree('a')",
        "import tempfile\ntempfile.mkdtemp()",
        "open('a', 'w')",
        "open('a', mode='r+b')",
        "open('a', how)",
        "path.open('ab')",
        "path.write_text('a')",
        "path.parent.mkdir(parents=True)",
        "path.replace(other)",
        "path.rename(other)",
    ],
)
def test_writing_is_recognised(code: str) -> None:
    assert list(writes(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.open('a', os.O_RDONLY | os.O_CLOEXEC)",
        "import os\nos.open(os.devnull, os.O_WRONLY)",
        "open('a', 'rb').read()",
        "path.open().read()",
        "Store.open(path, clock=clock)",
        "class Stream:\n    def write_bytes(self, data): ...\nstream.write_bytes(data)",
        "'a'.replace('a', 'b')",
        "import dataclasses\ndataclasses.replace(a, b=1)",
        "from casnap.fs import durable\ndurable.mkdir(path)",
        "import os\nos.stat('a')",
    ],
)
def test_reading_is_not_taken_for_writing(code: str) -> None:
    assert list(writes(ast.parse(code))) == []


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.environ['HOME']",
        "from os import environ\nenviron.get('HOME')",
        "import time\ntime.time_ns()",
        "import datetime\ndatetime.datetime.now(datetime.UTC)",
        "import datetime as dt\ndt.datetime.now(dt.UTC)",
        "from datetime import datetime\ndatetime.now()",
        "from pathlib import Path\nPath.home()",
        "path.expanduser()",
        "import os\nos.path.expanduser('~')",
        "import sys\nsys.stderr.write('a')",
        "print('a')",
    ],
)
def test_looking_around_is_recognised(code: str) -> None:
    assert list(ambient(ast.parse(code)))


@pytest.mark.parametrize("code", ["clock.now()", "import time\ntime.strftime('%Y')", "import os\nos.geteuid()"])
def test_an_argument_is_not_taken_for_looking_around(code: str) -> None:
    assert list(ambient(ast.parse(code))) == []


def test_nothing_that_is_kept_names_a_path_of_the_machine_it_was_made_on() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("this is no git checkout")
    machine = re.compile(rb"(?<![\w.~$}])/(?:wor" + rb"k|roo" + rb"t/\.py" + rb"env)/")
    named = [
        path
        for path in listed.stdout.decode().split("\0")
        if path and (CHECKOUT / path).is_file() and machine.search((CHECKOUT / path).read_bytes())
    ]
    assert named == []
