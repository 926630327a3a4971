"""What an agent writes to its hook: JSON of whatever size and shape, of which a few fields are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from casnap.errors import CasnapError

MOST_TEXT = 200
"""Characters of a text that are kept."""

_BOM = b"\xef\xbb\xbf"

_fields = msgspec.json.Decoder(dict[str, Raw])


class BadPayload(CasnapError):
    """What the agent wrote tells of no event."""

    code = "bad-payload"


class Payload(Mapping[str, Any]):
    """The fields of a JSON object, decoded as they are asked for: what is not asked for may be huge.

    A name may lead through objects: ``extra.turn_id``. What is not there, or not JSON, is None.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self._inner: dict[str, Payload] = {}

    def __getitem__(self, name: str) -> Any:
        first, dot, rest = name.partition(".")
        if dot:
            return self._within(first).get(rest)
        found = self._fields[first]
        if not isinstance(found, Raw):
            return found
        try:
            return msgspec.json.decode(found)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def _within(self, name: str) -> Payload:
        if name not in self._inner:
            self._inner[name] = Payload(_fields_of(self._fields.get(name)))
        return self._inner[name]

    def text(self, *names: str, longest: int = MOST_TEXT) -> str:
        """The first of these fields that is a text, or a number, and not empty; no longer than ``longest``."""
        for name in names:
            found = self.get(name)
            if isinstance(found, int) and not isinstance(found, bool):
                found = str(found)
            if isinstance(found, str) and found:
                return found[:longest].encode("utf-8", "replace").decode()
        return ""

    def texts(self, name: str) -> tuple[str, ...]:
        """The texts of a field that is a text or a list of them."""
        found = self.get(name)
        listed = found if isinstance(found, list) else [found]
        return tuple(text for text in listed if isinstance(text, str) and text)


def _fields_of(found: Any) -> Mapping[str, Any]:
    if isinstance(found, Raw):
        try:
            return _fields.decode(found)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return {}
    return found if isinstance(found, dict) else {}


def parse(data: bytes) -> Payload:
    """The object that was written.

    Raises:
        BadPayload: it is no JSON object.
    """
    data = data.removeprefix(_BOM)
    if not data.strip():
        raise BadPayload("cannot read the event: standard input is empty", hint="agents write JSON to it")
    try:
        return Payload(_fields.decode(data))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Payload(_leniently(data))


def _leniently(data: bytes) -> dict[str, Any]:
    """What the strict reader does not take: bytes that are not UTF-8, halves of characters, further white space."""
    import json

    try:
        found = json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError) as error:
        raise BadPayload(f"cannot read the event: it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadPayload("cannot read the event: it is no JSON object")
    return found
