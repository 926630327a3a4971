"""Settings that verbs take as arguments."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_COMPRESSION = 3
DEFAULT_WAIT = 10.0
GIB = 1 << 30
SENSITIVE_PATTERNS = (".env", ".env.*", "*.pem", "id_*")


@dataclass(frozen=True, slots=True)
class Policy:
    """What may differ between users; every field has its default.

    ``min_free`` is the number of bytes that must stay free on the store's disk (None: the smaller of 5 % of
    that disk and 1 GiB; 0: no limit). ``compression`` is a zstd level. ``wait`` bounds the wait for a lock,
    in seconds.
    """

    min_free: int | None = None
    compression: int = DEFAULT_COMPRESSION
    wait: float = DEFAULT_WAIT
    sensitive_patterns: tuple[str, ...] = SENSITIVE_PATTERNS

    def reserve(self, disk_size: int) -> int:
        """Bytes that must stay free on a disk of ``disk_size`` bytes."""
        return min(disk_size // 20, GIB) if self.min_free is None else self.min_free
