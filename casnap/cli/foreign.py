"""Import what others wrote without what that brings along and no command of casnap ever needs.

For the command line only: who imports casnap as a library keeps what they have.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing has it too, but takes half as long to import as Python takes to start
if TYPE_CHECKING:
    from types import ModuleType, TracebackType
    from typing import Any


def import_msgspec() -> None:
    """Import msgspec and pathlib, without what only some of their users need.

    A version of msgspec that cannot do with the stand-ins is imported as it is.
    """
    before = set(sys.modules)
    try:
        with StandIns(_of_msgspec()):
            import pathlib  # noqa: F401

            import msgspec
    except (AttributeError, ImportError):
        for name in sys.modules.keys() - before:
            if name.partition(".")[0] in {"msgspec", "pathlib"}:
                del sys.modules[name]
        import msgspec
    else:
        for name in ("inspect", "toml", "yaml"):  # whoever asks for one imports it
            vars(msgspec).pop(name, None)


class StandIns:
    """Within the with block, modules that have not been imported are smaller than they are, or absent."""

    def __init__(self, modules: dict[str, ModuleType | None] | None = None) -> None:
        self._modules = {**_of_all(), **(modules or {})}

    def __enter__(self) -> None:
        self._modules = {name: module for name, module in self._modules.items() if name not in sys.modules}
        sys.modules.update(self._modules)  # type: ignore[arg-type]  # None: no such module, as importlib knows it

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for name, module in self._modules.items():
            _put_away(name, module)  # whoever imports it from now on gets the real one


def _of_all() -> dict[str, ModuleType | None]:
    """Modules of Python itself of which casnap, sqlite3 and zstandard need little, if nothing is to be written."""
    try:
        import _datetime  # type: ignore[import-not-found]  # compiled; its stub goes by the name that it stands in for
        import _signal  # type: ignore[import-not-found]
        import _thread
        import _weakrefset
    except ImportError:  # a Python that is built in another way
        return {}
    implementation = {"cpython": "CPython", "pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name)
    return {
        "datetime": _module("datetime", **vars(_datetime)),
        "platform": _module("platform", python_implementation=lambda: implementation),
        "signal": _module("signal", **vars(_signal)),
        "threading": _module("threading", local=_thread._local),
        "weakref": _module("weakref", WeakSet=_weakrefset.WeakSet),
    }


def _of_msgspec() -> dict[str, ModuleType | None]:
    return {
        "typing_extensions": None,  # typing does as well, and this brings along all of the compiler
        # Types that msgspec knows: no value that casnap reads or writes has one of them.
        "decimal": _module("decimal", Decimal=type("Decimal", (), {})),
        "uuid": _module("uuid", UUID=type("UUID", (), {}), SafeUUID=type("SafeUUID", (), {"unknown": None})),
        # What it says about types, and says of them in JSON; formats that casnap reads otherwise, or not at all.
        "msgspec.inspect": _module("msgspec.inspect"),
        "msgspec._json_schema": _later("msgspec._json_schema", "schema", "schema_components"),
        "msgspec.toml": _module("msgspec.toml"),
        "msgspec.yaml": _module("msgspec.yaml"),
        # What pathlib makes a file: URL with; Python 3.13 imports it when one is made.
        "urllib.parse": _later("urllib.parse", "quote_from_bytes"),
    }


def _module(name: str, **at_hand: Any) -> ModuleType:
    """A module with these contents; for any other the real one is imported when somebody asks for it."""
    module = type(sys)(name)

    def rest(wanted: str) -> Any:
        if wanted.startswith("__"):  # so Python asks about any module
            raise AttributeError(f"module {name!r} has no attribute {wanted!r}")
        return getattr(_real(name, module), wanted)

    vars(module).update(at_hand, __name__=name, __spec__=None, __getattr__=rest)
    return module


def _later(name: str, *functions: str) -> ModuleType:
    """A module of functions that import the real one when they are called: others take them by name."""
    module = _module(name)

    def function(wanted: str) -> Any:
        return lambda *arguments, **options: getattr(_real(name, module), wanted)(*arguments, **options)

    vars(module).update({wanted: function(wanted) for wanted in functions})
    return module


def _real(name: str, stand_in: ModuleType) -> ModuleType:
    import importlib

    _put_away(name, stand_in)
    return importlib.import_module(name)


def _put_away(name: str, stand_in: ModuleType | None) -> None:
    if name in sys.modules and sys.modules[name] is stand_in:
        del sys.modules[name]
