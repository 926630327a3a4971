"""Lines of the operation log: hash-chained JSON (docs/format/oplog.md)."""

from __future__ import annotations

import contextlib
import functools
import importlib
from typing import Any, get_args

import msgspec

from casnap.codec.hashing import NO_PREVIOUS as NO_PREVIOUS
from casnap.codec.operations import find_fault, is_known_result
from casnap.errors import Damage, Refused, TooNew
from casnap.model.operation import AnyOperation

MAX_LINE = 1 << 20
"""Most bytes in a line, its end included."""

_MARK = b',"hash":"'
_END = b'"}\n'
_HASH_DIGITS = 64
_TAIL = len(_MARK) + _HASH_DIGITS + len(_END)

_encoder = msgspec.json.Encoder()


class _Named(msgspec.Struct):
    """As much of any operation as says which one it is."""

    op: str


_KNOWN = frozenset(kind.__struct_config__.tag for kind in get_args(AnyOperation))


def encode_line(operation: AnyOperation) -> tuple[bytes, str]:
    """The line, its line feed included, and its hash: what the next line's ``prev`` must be.

    Raises:
        Refused: the line would be longer than ``MAX_LINE``.
        ValueError: a field breaks a rule that readers check.
    """
    if fault := find_fault(operation):
        raise ValueError(f"cannot write line of the operation log: {fault}")
    body = _encoder.encode(operation)[:-1]
    if len(body) + _TAIL > MAX_LINE:
        raise Refused(
            f"cannot record operation: its line would take {len(body) + _TAIL} bytes, {MAX_LINE} are allowed",
            hint="name fewer checkpoints or paths at a time",
        )
    line_hash = _hash_of(body)
    return b"".join((body, _MARK, line_hash.encode(), _END)), line_hash


def decode_line(line: bytes) -> tuple[AnyOperation, str]:
    """The operation that a line records, and the line's hash; the chain is the caller's to check.

    Raises:
        Damage: the line is not whole, or not exactly what :func:`encode_line` makes of any operation.
        TooNew: it is whole, but its operation or its result is one that this version does not know.
    """
    body, line_hash = _split(line)
    text = body + b"}"
    try:
        if _decoder(_Named).decode(text).op not in _KNOWN:
            raise _too_new("operation")
        operation: AnyOperation = _decoder(AnyOperation).decode(text)
        canonical = _encoder.encode(operation) == text
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise Damage(f"cannot read line of the operation log: {error}") from None
    if not canonical:
        raise Damage("cannot read line of the operation log: it is not in canonical form")
    if not is_known_result(operation):
        raise _too_new("result")
    if fault := find_fault(operation):
        raise Damage(f"cannot read line of the operation log: {fault}")
    return operation, line_hash


def _too_new(what: str) -> TooNew:
    return TooNew(f"cannot read operation log: it holds a newer format's {what}", hint="use a newer casnap")


def _split(line: bytes) -> tuple[bytes, str]:
    """What the hash of a whole line covers, and that hash."""
    if len(line) > MAX_LINE:
        raise Damage(f"cannot read line of the operation log: it is longer than {MAX_LINE} bytes")
    body, tail = line[:-_TAIL], line[-_TAIL:]
    if not body or not tail.startswith(_MARK) or not tail.endswith(_END):
        raise Damage("cannot read line of the operation log: it is not whole")
    line_hash = _hash_of(body)
    if tail[len(_MARK) : -len(_END)] != line_hash.encode():
        raise Damage("cannot read line of the operation log: its hash is wrong")
    return body, line_hash


@functools.cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Made when it is needed: most commands read no line, since the catalog has them all."""
    return msgspec.json.Decoder(kind)


@functools.cache
def _sha256() -> Any:
    """SHA-256 as the interpreter has it built in: hashlib loads OpenSSL first, which takes longer than all lines."""
    for name in ("_sha2", "_sha256"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name).sha256
    return importlib.import_module("hashlib").sha256


def _hash_of(body: bytes) -> str:
    found: str = _sha256()(body).hexdigest()
    return found
