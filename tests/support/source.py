"""What a module of casnap does to the world, read off its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGE = CHECKOUT / "casnap"

_WRITING_CALLS = {
    "os": (
        "chflags chmod chown copy_file_range fchmod fchown fdatasync fsync ftruncate lchmod lchown link makedirs mkdir"
        " mkfifo mknod posix_fallocate pwrite pwritev remove removedirs removexattr rename renames replace rmdir"
        " sendfile setxattr symlink sync truncate unlink utime write writev"
    ),
    "shutil": "copy copy2 copyfile copyfileobj copymode copystat copytree make_archive move rmtree",
    "tempfile": "NamedTemporaryFile TemporaryDirectory TemporaryFile mkdtemp mkstemp",
}
_WRITING_FLAGS = ("O_APPEND", "O_CREAT", "O_RDWR", "O_TMPFILE", "O_TRUNC", "O_WRONLY")
_WRITING_METHODS = (
    "chmod",
    "hardlink_to",
    "mkdir",
    "rmdir",
    "symlink_to",
    "touch",
    "unlink",
    "write_bytes",
    "write_text",
)
_AMBIENT = {
    "os": "environ environb getcwd getcwdb getenv getenvb getlogin getpid uname",
    "os.path": "expanduser expandvars",
    "time": "clock_gettime clock_gettime_ns localtime monotonic monotonic_ns perf_counter sleep time time_ns",
    "socket": "getfqdn gethostname",
    "getpass": "getpass getuser",
    "platform": "node",
    "sys": "argv stderr stdin stdout",
}
_AMBIENT_METHODS = {"cwd", "expanduser", "home", "utcnow", "today"}
_AMBIENT_BUILTINS = {"input", "print"}


@dataclass(frozen=True)
class Finding:
    """One place in a module, and what it does there."""

    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


def modules() -> list[str]:
    """Every module of the package, as a path relative to it."""
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def parse(module: str) -> ast.Module:
    """The syntax tree of ``module``, a path relative to the package."""
    return ast.parse((PACKAGE / module).read_text("utf-8"), module)


def writes(tree: ast.Module) -> Iterator[Finding]:
    """Calls that write to a disk, sync one, or open something for writing."""
    names = _imported(tree)
    silencing = _openings_of_devnull(tree, names)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            module, attribute = _split(_full_name(node, names))
            if attribute in _WRITING_CALLS.get(module, "").split():
                yield Finding(node.lineno, f"{module}.{attribute}")
            if module == "os" and attribute in _WRITING_FLAGS and node not in silencing:
                yield Finding(node.lineno, f"os.{attribute}")
        if isinstance(node, ast.Call):
            yield from _writing_call(node, names, own)


def ambient(tree: ast.Module) -> Iterator[Finding]:
    """Uses of what a process finds around itself: environment, clock, home, identity, terminal."""
    names = _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            full = _full_name(node, names)
            module, attribute = _split(full)
            if attribute in _AMBIENT.get(module, "").split() or full in _AMBIENT_BUILTINS:
                yield Finding(node.lineno, full)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            now = node.func.attr == "now" and _split(_full_name(node.func, names))[0].startswith("datetime")
            if now or (node.func.attr in _AMBIENT_METHODS and not node.args):
                yield Finding(node.lineno, f".{node.func.attr}()")


def long_pieces(tree: ast.Module, *, function: int, klass: int) -> Iterator[Finding]:
    """Functions and classes that have more lines than allowed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            limit = klass if isinstance(node, ast.ClassDef) else function
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > limit:
                yield Finding(node.lineno, f"{node.name} has {lines} lines, {limit} are allowed")


def _imported(tree: ast.Module) -> dict[str, str]:
    """Local name -> full name, for everything that the module imports."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else (alias.name.partition(".")[0])
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _full_name(node: ast.AST, names: dict[str, str]) -> str:
    """``os.path.join`` for what is written so, or ``""`` where the root is no plain name."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        root = _full_name(node.value, names)
        return f"{root}.{node.attr}" if root else ""
    return ""


def _split(full: str) -> tuple[str, str]:
    module, _, attribute = full.rpartition(".")
    return module, attribute


def _writing_call(node: ast.Call, names: dict[str, str], own: set[str]) -> Iterator[Finding]:
    """``own`` are functions that the module defines: a method of such a name is taken for the module's."""
    full = _full_name(node.func, names)
    if full in ("open", "io.open", "os.fdopen") and _mode_writes(node, position=1, unknown=True):
        yield Finding(node.lineno, f"{full}() for writing")
    if not isinstance(node.func, ast.Attribute) or full.startswith(("casnap.fs.", "os.", "io.", "shutil.")):
        return
    method = node.func.attr
    if method == "open" and _mode_writes(node, position=0, unknown=False):
        yield Finding(node.lineno, ".open() for writing")
    if method in _WRITING_METHODS and method not in own:
        yield Finding(node.lineno, f".{method}()")
    if method in ("rename", "replace") and len(node.args) == 1 and not node.keywords:
        yield Finding(node.lineno, f".{method}()")


def _mode_writes(node: ast.Call, *, position: int, unknown: bool) -> bool:
    """Whether the mode that is given allows writing; ``unknown`` is the answer where it is no literal."""
    given = node.args[position : position + 1] + [word.value for word in node.keywords if word.arg == "mode"]
    if not given:
        return False
    mode = given[0]
    if isinstance(mode, ast.Constant) and isinstance(mode.value, str):
        return bool(set(mode.value) & set("wax+"))
    return unknown


def _openings_of_devnull(tree: ast.Module, names: dict[str, str]) -> set[ast.AST]:
    """Everything inside ``os.open(os.devnull, …)``: how a program goes quiet when its pipe is closed."""
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and _full_name(node.func, names) == "os.open"
        and node.args
        and _full_name(node.args[0], names) == "os.devnull"
        for inner in ast.walk(node)
    }
