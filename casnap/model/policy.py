"""Settings that verbs take as arguments."""

from __future__ import annotations

from dataclasses import dataclass, field

DEFAULT_COMPRESSION = 3
DEFAULT_WAIT = 10.0
GIB = 1 << 30
SENSITIVE_PATTERNS = (".env", ".env.*", "*.pem", "id_*")


@dataclass(frozen=True, slots=True)
class Selection:
    """What a person leaves out of checkpoints beside what ``.casnapignore`` files say.

    ``exclude`` is text in gitignore syntax, relative to the workspace's root; it outranks every file.
    ``use_gitignore`` makes ``.gitignore`` files count too, ``exclude_caches`` leaves out directories with a
    valid CACHEDIR.TAG, and regular files of more than ``max_file_size`` bytes stay out.
    """

    exclude: bytes = b""
    use_gitignore: bool = False
    exclude_caches: bool = True
    max_file_size: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """What may differ between users; every field has its default.

    ``min_free`` is the number of bytes that must stay free on the store's disk (None: the smaller of 5 % of
    that disk and 1 GiB; 0: no limit). ``compression`` is a zstd level. ``wait`` bounds the wait for a lock,
    in seconds. With ``sqlite_consistent`` a live SQLite database is captured through its backup interface.
    """

    min_free: int | None = None
    compression: int = DEFAULT_COMPRESSION
    wait: float = DEFAULT_WAIT
    sensitive_patterns: tuple[str, ...] = SENSITIVE_PATTERNS
    selection: Selection = field(default_factory=Selection)
    sqlite_consistent: bool = False

    def reserve(self, disk_size: int) -> int:
        """Bytes that must stay free on a disk of ``disk_size`` bytes."""
        return min(disk_size // 20, GIB) if self.min_free is None else self.min_free
