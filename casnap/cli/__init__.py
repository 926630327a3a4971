"""The command line. click and rich live here and nowhere else; one file a verb."""

from __future__ import annotations

import gc
import os
import sys

from casnap import __version__

TYPE_CHECKING = False  # typing has it too, but takes half as long to import as Python takes to start
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command that this process was started for, and exit with its status."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        _leave(_tell_version())
    gc.disable()  # until the command begins: what modules consist of stays, however often one looks
    try:
        from casnap.cli.foreign import StandIns, import_msgspec

        import_msgspec()
        with StandIns():
            from casnap.cli.running import run
        status = run(arguments)
    except (KeyboardInterrupt, RuntimeError) as error:  # where there is nothing to tell it to
        from casnap.errors import interruption_in

        if interruption_in(error) is None:
            raise
        sys.exit(130)
    _leave(status)


def _leave(status: int) -> NoReturn:
    """End at once: all is written and closed, and taking every module apart takes longer than many a command."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except OSError:
        sys.exit(status)
    os._exit(status)


def _tell_version() -> int:
    """Answer what every script asks that looks for casnap, before anything is imported."""
    line = f"casnap {__version__}"
    try:
        buffer = sys.stdout.buffer
        getattr(buffer, "raw", buffer).write(f"{line}\n".encode())  # nothing is left in it where that fails
    except (AttributeError, OSError, ValueError):  # nobody listens, or the disk is full: that takes more words
        from casnap.cli.output import Output

        output = Output()
        output.data(line)
        return output.finish()
    return 0
