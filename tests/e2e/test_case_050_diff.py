"""Field case 50: a diff of huge and one-line files ends soon, says what it left out, and still counts it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.cli import Result, peak_memory, run
from support.oracle import difference, snapshot

LINES = 200_000
ONE_LINE = 20_000_000


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of one line and one of many, wholly different in two checkpoints."""
    directory = tmp_path_factory.mktemp("case") / "workspace"
    directory.mkdir()
    middles = {"one": b"", "two": b"differing"}
    for name, middle in middles.items():
        (directory / "bundle.js").write_bytes(b"x" * (ONE_LINE // 2) + middle + b"y" * (ONE_LINE // 2))
        (directory / "table").write_bytes(b"".join(b"%s %d\n" % (name.encode(), row) for row in range(LINES)))
        casnap(directory, "checkpoint", name)
    return directory


def casnap(workspace: Path, *args: str, check: int = 0) -> Result:
    return run("-w", workspace, "--store", workspace.parent / "store", *args, check=check)


def test_case_050_the_summary_is_complete(workspace: Path) -> None:
    assert casnap(workspace, "diff", "one", "two", "--name-status").stdout == "M\tbundle.js\nM\ttable\n"
    lines = casnap(workspace, "diff", "one", "two", "--stat", "--exit-code", check=4).stdout.splitlines()
    assert lines[0] == f" bundle.js | Large {ONE_LINE} -> {ONE_LINE + 9} bytes"
    assert lines[2] == f" 2 files changed, {LINES} insertions(+), {LINES} deletions(-)"


def test_case_050_contents_are_compared_within_bounds_and_the_cut_is_said(workspace: Path) -> None:
    shown = casnap(workspace, "diff", "one", "two", "--exit-code", check=4)
    assert "Files a/bundle.js and b/bundle.js are too large to compare and differ\n" in shown.stdout
    assert "note: contents of 1 path are not in the patch" in shown.stderr
    assert shown.stdout.count("\n-one ") == shown.stdout.count("\n+two ") == LINES
    place = ("-w", workspace, "--store", workspace.parent / "store")
    assert peak_memory(*place, "diff", "one", "two") < 400 << 20


def test_case_050_an_exact_patch_is_as_small_as_the_difference(workspace: Path, tmp_path: Path) -> None:
    patch = casnap(workspace, "diff", "one", "two", "--binary", "--", "bundle.js").stdout
    assert len(patch) < 1000
    casnap(workspace, "restore-to", str(tmp_path / "copy"), "one")
    subprocess.run(["git", "apply"], cwd=tmp_path / "copy", input=patch.encode(), check=True)
    after = snapshot(workspace, times=False)
    assert (
        difference(
            {b"bundle.js": after[b"bundle.js"]}, {b"bundle.js": snapshot(tmp_path / "copy", times=False)[b"bundle.js"]}
        )
        == []
    )
