"""Configuration files that are no files: nothing waits, nothing fills the memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from casnap import Usage
from casnap.settings import load_settings
from casnap.settings.whole_file import LONGEST
from support.scanning import deadline


@pytest.mark.parametrize("kind", ["pipe", "endless device", "directory", "too long"])
def test_what_is_no_configuration_file_is_said_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "casnap" / "config.toml"
    path.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "endless device":
        path.symlink_to("/dev/zero")
    elif kind == "directory":
        path.mkdir()
    else:
        path.write_bytes(b"#" * (LONGEST + 1))
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "CASNAP_STORE": str(tmp_path / "store")}
    with deadline(20), pytest.raises(Usage, match=r"cannot read .*config\.toml: "):
        load_settings(environ)
