"""Settings that verbs take as arguments."""

from __future__ import annotations

import fnmatch
import functools
import re
from enum import StrEnum

from msgspec import Struct, field

DEFAULT_COMPRESSION = 3
DEFAULT_WAIT = 10.0
DEFAULT_KEEP = 20
GIB = 1 << 30
SENSITIVE_PATTERNS = (".env", ".env.*", "*.pem", "id_*")


class Sensitive(StrEnum):
    """What becomes of files whose names say that they hold secrets."""

    KEEP = "keep"
    SKIP = "skip"
    REDACT = "redact"


class Selection(Struct, frozen=True):
    """What a person leaves out of checkpoints beside what ``.casnapignore`` files say.

    ``exclude`` is text in gitignore syntax, relative to the workspace's root; it outranks every file.
    ``use_gitignore`` makes ``.gitignore`` files count too, ``exclude_caches`` leaves out directories with a
    valid CACHEDIR.TAG, and regular files of more than ``max_file_size`` bytes stay out. Without ``include_git``
    every ``.git`` stays out. Unless ``one_file_system``, mounted directories are looked into.
    ``sensitive`` is about regular files whose base name fits one of ``sensitive_patterns``.
    """

    exclude: bytes = b""
    use_gitignore: bool = False
    exclude_caches: bool = True
    max_file_size: int | None = None
    include_git: bool = True
    one_file_system: bool = True
    sensitive: Sensitive = Sensitive.KEEP
    sensitive_patterns: tuple[str, ...] = SENSITIVE_PATTERNS

    def is_sensitive(self, name: bytes) -> bool:
        """Whether a base name says that the file holds secrets, whatever is done with such files."""
        return _matcher(self.sensitive_patterns).match(name) is not None


@functools.lru_cache(maxsize=16)
def _matcher(patterns: tuple[str, ...]) -> re.Pattern[bytes]:
    """One expression for all patterns: it is asked of every file."""
    globs = [fnmatch.translate(pattern) for pattern in patterns] or [r"(?!)"]
    return re.compile("|".join(globs).encode("utf-8", "surrogateescape"))


class Retention(Struct, frozen=True):
    """Which checkpoints a cleanup without options of its own lets go.

    Those beyond the newest ``keep`` and those older than ``max_age_ns`` nanoseconds; where both are set, those
    that are both; where neither is, none. ``auto`` lets checkpoints clean up after themselves. With
    ``keep_named`` a checkpoint that was given a name stays, as a pinned one always does.
    """

    keep: int | None = DEFAULT_KEEP
    max_age_ns: int | None = None
    auto: bool = False
    keep_named: bool = False


class Policy(Struct, frozen=True):
    """What may differ between users; every field has its default.

    ``min_free`` is the number of bytes that must stay free on the store's disk (None: the smaller of 5 % of
    that disk and 1 GiB; 0: no limit). ``compression`` is a zstd level. ``wait`` bounds the wait for a lock,
    in seconds. With ``sqlite_consistent`` a live SQLite database is captured through its backup interface. With
    ``auto_gc`` checkpoints let space be freed in the background.
    """

    min_free: int | None = None
    compression: int = DEFAULT_COMPRESSION
    wait: float = DEFAULT_WAIT
    selection: Selection = field(default_factory=Selection)
    sqlite_consistent: bool = False
    retention: Retention = field(default_factory=Retention)
    auto_gc: bool = True

    def reserve(self, disk_size: int) -> int:
        """Bytes that must stay free on a disk of ``disk_size`` bytes."""
        return min(disk_size // 20, GIB) if self.min_free is None else self.min_free
