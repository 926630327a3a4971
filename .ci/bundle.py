"""Make dist/casnap-VERSION-offline-PLATFORM.tar.gz: casnap and all it needs, for a machine without a network.

The wheels are those of the interpreter that runs this: the other machine needs the same version of Python
and the same kind of processor and C library.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
INSTALLER = Path(__file__).with_name("install.sh")


def main() -> None:
    """Write the bundle into the directory that is named on the command line, and print its path."""
    if len(sys.argv) != 2:
        sys.exit("usage: bundle.py DIRECTORY")
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        wheels = Path(scratch) / "wheels"
        collect_wheels(wheels)
        name = f"casnap-{version_of(wheels)}-offline-{platform()}"
        content = Path(scratch) / name
        lay_out(content, wheels)
        bundle = directory / f"{name}.tar.gz"
        with tarfile.open(bundle, "w:gz") as archive:
            archive.add(content, arcname=name, filter=_owned_by_nobody_special)
    print(bundle)


def collect_wheels(directory: Path) -> None:
    """Wheels of casnap and its runtime dependencies; what is published without one is built."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(directory), str(CHECKOUT)],
        check=True,
    )


def version_of(wheels: Path) -> str:
    """casnap's version, from the name of its wheel."""
    (wheel,) = wheels.glob("casnap-*.whl")
    return wheel.name.split("-")[1]


def platform() -> str:
    """``linux-x86_64-cpython-311``: what a machine must be like to use the bundle."""
    abi = f"{sys.implementation.name}-{sys.version_info.major}{sys.version_info.minor}"
    return f"{sysconfig.get_platform()}-{abi}"


def lay_out(directory: Path, wheels: Path) -> None:
    """What is in the archive: install.sh, wheels/, the Python version that is needed, and checksums of all."""
    directory.mkdir()
    shutil.copytree(wheels, directory / "wheels")
    shutil.copy(INSTALLER, directory / "install.sh")
    shutil.copy(CHECKOUT / "LICENSE", directory / "LICENSE")
    (directory / "PYTHON").write_text(f"{sys.version_info.major}.{sys.version_info.minor}\n")
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(directory)}\n" for path in files]
    (directory / "SHA256SUMS").write_text("".join(sums))


def _owned_by_nobody_special(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main()
