"""The command line. click and rich live here and nowhere else; one file a verb."""

from __future__ import annotations

import sys
from typing import NoReturn

from casnap import __version__


def main() -> NoReturn:
    """Run the command that this process was started for, and exit with its status."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:  # asked by every script that looks for casnap: not worth importing click
        from casnap.cli.output import Output

        output = Output()
        output.data(f"casnap {__version__}")
        sys.exit(output.finish())
    try:
        from casnap.cli.app import run
    except KeyboardInterrupt:  # before there is anything to tell it to
        sys.exit(130)
    sys.exit(run(arguments))
