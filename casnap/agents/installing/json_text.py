"""Text that json-five can parse: it takes no raw U+2028 and U+2029 in a string, which JSON allows."""

from __future__ import annotations

import re
from typing import Any

BOM = "\ufeff"

_SEPARATORS = "\u2028\u2029"

_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
"""A string or a comment."""

_SIGN = re.compile(r"\\.|[\u2028\u2029]", re.DOTALL)
"""What is escaped, or one of these separators that is not."""


class Masked:
    """Text with these separators replaced, in strings and comments, by signs that do not occur in it."""

    def __init__(self, text: str) -> None:
        private = (chr(code) for code in range(0xE000, 0xF900))
        signs = [sign for sign in private if sign not in text][: len(_SEPARATORS)]
        self._back = str.maketrans(dict(zip(signs, _SEPARATORS, strict=True)))
        self.text = _translated(text, dict(zip(_SEPARATORS, signs, strict=True)))

    def unmasked(self, text: str) -> str:
        """The same with the separators as they were."""
        return text.translate(self._back)


def values(text: str) -> Any:
    """What a text says, without a mark of byte order.

    Raises:
        json5.utils.JSON5DecodeError: it is no JSON5.
    """
    from json5 import loads

    escapes = {separator: f"\\u{ord(separator):04x}" for separator in _SEPARATORS}
    return loads(_translated(text.removeprefix(BOM), escapes))


def _translated(text: str, signs: dict[str, str]) -> str:
    if not any(separator in text for separator in _SEPARATORS):
        return text
    return _PIECE.sub(lambda piece: _SIGN.sub(lambda sign: signs.get(sign[0], sign[0]), piece[0]), text)
