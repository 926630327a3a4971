"""The offline bundle: built with a network, installed and used without one."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from support.cli import CHECKOUT
from support.oracle import difference, snapshot

pytestmark = pytest.mark.slow

OFFLINE = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]


def _can_unshare() -> bool:
    try:
        return subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked bundle."""
    if not _can_unshare():
        pytest.skip("a network namespace cannot be made here")
    directory = tmp_path_factory.mktemp("bundle")
    person = os.environ | {"HOME": pwd.getpwuid(os.getuid()).pw_dir}  # who may have told pip where packages are
    done = subprocess.run(
        [sys.executable, CHECKOUT / ".ci/bundle.py", directory], capture_output=True, text=True, check=False, env=person
    )
    assert done.returncode == 0, done.stderr
    archive = Path(done.stdout.strip())
    with tarfile.open(archive) as packed:
        packed.extractall(directory, filter="data")
    return directory / archive.name.removesuffix(".tar.gz")


def _offline(*words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*OFFLINE, *words], capture_output=True, text=True, check=False, env={**os.environ, **variables}
    )


def test_the_bundle_installs_and_works_without_a_network(bundle: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    installed = _offline("sh", bundle / "install.sh", prefix, PYTHON=sys.executable)
    assert installed.returncode == 0, installed.stderr

    casnap = prefix / "bin" / "casnap"
    version = _offline(casnap, "--version")
    assert (version.returncode, version.stdout.split()[0]) == (0, "casnap")

    workspace = tmp_path / "workspace"
    (workspace / "sub").mkdir(parents=True)
    (workspace / "sub" / "file").write_text("precious\n")
    before = snapshot(workspace)
    made = _offline(casnap, "checkpoint", "-w", workspace)
    assert made.returncode == 0, made.stderr
    (workspace / "sub" / "file").write_text("spoilt\n")
    back = _offline(casnap, "rollback", "-w", workspace, "--yes")
    assert back.returncode == 0, back.stderr
    assert difference(before, snapshot(workspace)) == []


def test_a_damaged_bundle_is_refused_before_anything_is_installed(bundle: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    subprocess.run(["cp", "-r", bundle, damaged], check=True)
    wheel = next((damaged / "wheels").glob("casnap-*.whl"))
    wheel.write_bytes(wheel.read_bytes()[:-1] + b"x")
    refused = _offline("sh", damaged / "install.sh", tmp_path / "prefix", PYTHON=sys.executable)
    assert refused.returncode == 1
    assert refused.stderr.endswith("error: cannot install casnap: the bundle is damaged\n")
    assert not (tmp_path / "prefix").exists()


def test_a_bundle_for_another_python_is_refused(bundle: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["cp", "-r", bundle, other], check=True)
    (other / "PYTHON").write_text("2.7\n")
    sums = (other / "SHA256SUMS").read_text().splitlines(keepends=True)
    (other / "SHA256SUMS").write_text("".join(line for line in sums if not line.endswith("  PYTHON\n")))
    refused = _offline("sh", other / "install.sh", tmp_path / "prefix", PYTHON=sys.executable)
    assert refused.returncode == 1
    assert "this bundle needs Python 2.7" in refused.stderr
    assert not (tmp_path / "prefix").exists()
