"""What the command line imports of others is smaller than it is, as long as nobody needs the rest."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.cli import environment

BEGIN = "from casnap.cli import foreign; foreign.import_msgspec(); "


def told(program: str) -> list[str]:
    """What a program prints, word by word."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "use",
    [
        "import datetime; print(datetime.__name__, datetime.datetime.fromisoformat('2026-12-01').year)",
        "import decimal; print(decimal.__name__, int(decimal.Decimal('2.5').scaleb(1)) * 81 + 1)",
        "import uuid; print(uuid.__name__, uuid.UUID(int=2026).int)",
        "import platform; print(platform.__name__, len(platform.uname()) + 2020)",
        "import signal; print(signal.__name__, signal.Signals.SIGTERM.value + 2011)",
        "import urllib.parse; print('urllib.parse', urllib.parse.urlsplit('http://host:2026/').port)",
        "import threading; print(threading.__name__, threading.active_count() + 2025)",
        "import weakref; print(weakref.__name__, len(weakref.WeakValueDictionary()) + 2026)",
        "import msgspec.toml; print('msgspec.toml', msgspec.toml.decode('a = 2026')['a'])",
        "import typing_extensions; print('typing_extensions', 2026)",
        "import msgspec.inspect; print('msgspec.inspect', len(str(msgspec.inspect.type_info(int))) * 0 + 2026)",
    ],
)
def test_whoever_imports_one_of_them_afterwards_has_the_real_one(use: str) -> None:
    name = use.split(";", maxsplit=1)[0].removeprefix("import ")
    if name == "typing_extensions":
        pytest.importorskip(name)
    assert told(BEGIN + "\nwith foreign.StandIns(): pass\n" + use) == [name, "2026"]


def test_what_msgspec_and_pathlib_had_no_need_of_is_imported_when_it_is_asked_for() -> None:
    schema = "import msgspec; print(msgspec.json.schema(int)['type']); "
    address = "import pathlib; print(pathlib.Path('/a b').as_uri())"
    assert told(BEGIN + schema + address) == ["integer", "file:///a%20b"]


def test_whoever_keeps_a_stand_in_gets_the_rest_of_the_module_when_it_is_used() -> None:
    program = """
import sys
with foreign.StandIns():
    import datetime, platform, signal, threading, weakref
early = not {"random", "platform"} & sys.modules.keys()
print(early, threading.current_thread().name, signal.Signals(15).name, weakref.ref(foreign)() is foreign)
import threading as real
print(real.local is threading.local, real.Thread is threading.Thread, platform.machine() != "")
"""
    assert told(BEGIN + program) == ["True", "MainThread", "SIGTERM", "True", "True", "True", "True"]


def test_a_msgspec_that_takes_more_than_the_stand_ins_have_has_it_from_the_real_module() -> None:
    program = """
from casnap.cli import foreign
foreign._of_msgspec = lambda: {"uuid": foreign._module("uuid")}
foreign.import_msgspec()
import msgspec, uuid
print(msgspec.json.encode(uuid.UUID(int=1)).decode())
"""
    assert told(program) == ['"00000000-0000-0000-0000-000000000001"']


def test_a_msgspec_that_cannot_do_with_the_stand_ins_is_imported_as_it_is() -> None:
    program = """
from casnap.cli import foreign
foreign._of_msgspec = lambda: {"uuid": None}
foreign.import_msgspec()
import msgspec, uuid
print(msgspec.json.encode(uuid.UUID(int=1)).decode(), hasattr(msgspec, "inspect"))
"""
    assert told(program) == ['"00000000-0000-0000-0000-000000000001"', "True"]


@pytest.mark.parametrize("missing", ["_datetime", "_signal", "_weakrefset"])
def test_a_python_that_lacks_what_stand_ins_are_made_of_does_without_them(missing: str) -> None:
    program = f"""
import sys
sys.modules["{missing}"] = None
from casnap.cli import foreign
print(len(foreign.StandIns()._modules))
foreign.import_msgspec()
import msgspec
print(msgspec.json.decode(b"2026"))
"""
    assert told(program) == ["0", "2026"]


def test_what_has_been_imported_before_stays_what_it_is() -> None:
    program = """
import datetime, uuid
real = uuid, datetime
from casnap.cli import foreign
foreign.import_msgspec()
import datetime, msgspec, uuid
print((uuid, datetime) == real, msgspec.json.encode(uuid.UUID(int=1)).decode())
"""
    assert told(program) == ["True", '"00000000-0000-0000-0000-000000000001"']
