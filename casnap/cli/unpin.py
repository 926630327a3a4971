"""``casnap unpin``."""

from __future__ import annotations

from casnap.cli.pin import declare

command = declare("unpin", "Let checkpoints be deleted again.", pinned=False)
