"""What is fuzzed, one file a target: parsers of bytes from a damaged or hostile store, or from a person."""

from __future__ import annotations

from typing import Any

from fuzz.law import Target
from fuzz.targets import (
    checkpoint,
    chunk_list,
    group,
    hook_event,
    ignore_rules,
    index,
    line,
    metadata,
    name,
    pack_header,
    record,
    revision,
    trailer,
    tree,
)

TARGETS: tuple[Target[Any], ...] = tuple(
    module.TARGET
    for module in (
        pack_header,
        record,
        group,
        index,
        trailer,
        tree,
        chunk_list,
        checkpoint,
        metadata,
        line,
        name,
        ignore_rules,
        revision,
        hook_event,
    )
)
"""All of them, from packs up to people."""
