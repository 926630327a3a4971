"""The canonical encoding: one value, one text of bytes, and no memory for what is not there."""

from __future__ import annotations

import tracemalloc

import pytest
from msgspec import Struct

from casnap.codec import canonical
from casnap.errors import Damage

MAX_RAW = 4 << 20


class Pair(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    number: int
    data: tuple[bytes, ...] = ()


def test_a_value_is_an_array_of_its_tag_and_its_fields() -> None:
    assert canonical.encode(Pair(300, (b"x",))) == b"\x93\x01\xcd\x01\x2c\x91\xc4\x01x"
    assert canonical.decode(b"\x93\x01\xcd\x01\x2c\x91\xc4\x01x", Pair) == Pair(300, (b"x",))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93\x01\xcd\x01\x2c\x91\xc4\x01",  # cut short
        b"\x93\x01\xcd\x01\x2c\x91\xc4\x01xx",  # something behind it
        b"\x93\x01\xce\x00\x00\x01\x2c\x91\xc4\x01x",  # a number longer than it need be
        b"\xdc\x00\x03\x01\xcd\x01\x2c\x91\xc4\x01x",  # an array longer than it need be
        b"\x93\x01\xcd\x01\x2c\x91\xc5\x00\x01x",  # bytes longer than they need be
        b"\x92\x01\x05",  # a default that is left out
        b"\x94\x01\x05\x90\xc0",  # a field too many
        b"\x93\x02\x05\x90",  # another tag
        b"\x93\x01\xca\x40\xa0\x00\x00\x90",  # 5.0
        b"\x93\x01\x05\x91\xa1x",  # text for bytes
        b"\x93\x01\x05\xc0",
        b"\x82\x01\x05\x90\xc0",
        b"\x93\x01\xc7\x01\x05x\x90",  # an extension
        b"\xc1",
    ],
)
def test_any_other_bytes_are_damage(data: bytes) -> None:
    with pytest.raises(Damage, match="cannot read object"):
        canonical.decode(data, Pair)


def test_a_count_beyond_the_bytes_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        for data in (
            b"\x93\x01\x05\xdd\xff\xff\xff\xff",
            b"\x93\x01\x05\x91\xc6\xff\xff\xff\xff",
            b"\xdd\xff\xff\xff\xff",
        ):
            with pytest.raises(Damage):
                canonical.decode(data + bytes(1000), Pair)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_more_bytes_than_an_object_may_have_are_damage() -> None:
    fits = canonical.encode(Pair(1, (bytes(MAX_RAW - 9),)))
    assert len(fits) == MAX_RAW
    assert canonical.decode(fits, Pair) == Pair(1, (bytes(MAX_RAW - 9),))
    with pytest.raises(Damage, match="are allowed"):
        canonical.decode(fits + b"\0", Pair)
