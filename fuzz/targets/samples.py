"""Values that the seeds of several targets are made of."""

from __future__ import annotations

from casnap.codec.hashing import content_id
from casnap.model.tree import Directory

ID = content_id(b"an id")
OTHER_ID = content_id(b"another id")
HEX = ID.hex()
WORKSPACE = "0123456789abcdef0123456789abcdef"
TEXT = b"a line of text that compresses\n" * 40
ROOT = Directory(b"", 0o755, 0, 0, 1_700_000_000, 0, (), ID, ID)
