"""What a user attaches to a checkpoint: a JSON object in one form (docs/format/checkpoint.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casnap.errors import Damage, Usage

NOTHING = "{}"


def encode_metadata(metadata: Mapping[str, Any]) -> str:
    """The canonical text: keys sorted, no blanks, characters as they are.

    Raises:
        Usage: it holds what JSON has no word for.
    """
    if not metadata:
        return NOTHING
    import json  # here and below, since hardly any checkpoint has metadata

    try:
        # Twice, because the first time makes text of keys that are numbers, and sorts them as numbers.
        text = _dump(json.loads(_dump(dict(metadata))))
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Usage(f"bad metadata: {error}", hint="give a JSON object, such as '{\"ticket\": 42}'") from None
    return text


def decode_metadata(text: str) -> dict[str, Any]:
    """The metadata that :func:`encode_metadata` made ``text`` of.

    Raises:
        Damage: it is no JSON object, or not in canonical form.
    """
    if text == NOTHING:
        return {}
    import json

    try:
        metadata = json.loads(text)
        canonical = isinstance(metadata, dict) and _dump(metadata) == text
    except (ValueError, RecursionError):
        canonical = False
    if not canonical:
        raise Damage("cannot read metadata: it is not a JSON object in canonical form")
    return dict(metadata)


def _dump(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
