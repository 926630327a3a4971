"""The manual page: what the program says of itself, in a form that troff takes, in the wheel."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from casnap import __version__
from casnap.cli.app import VERBS
from casnap.cli.grammar import ALIASES
from support.man import PAGE, render
from support.source import CHECKOUT


def test_the_manual_page_is_that_of_the_program() -> None:
    assert PAGE.read_text("utf-8") == render(), "run `make fmt`"


def test_the_manual_page_is_one_that_troff_takes_without_a_warning() -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    words = ["groff", "-man", "-ww", "-Tutf8", "-P-cbou", str(PAGE)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    shown = done.stdout
    assert [word for word in (*VERBS, *ALIASES) if word not in shown] == []
    assert "--if-changed" in shown
    assert "~/.local/share/casnap" in shown


def test_the_wheel_holds_the_manual_page(tmp_path: Path) -> None:
    wheel = pytest.importorskip("hatchling.builders.wheel")
    (built,) = wheel.WheelBuilder(str(CHECKOUT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as archive:
        name = f"casnap-{__version__}.data/data/share/man/man1/casnap.1"
        assert archive.read(name) == PAGE.read_bytes()
