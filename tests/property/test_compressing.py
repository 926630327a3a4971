"""What is written does not depend on which thread compressed it, or on how much at a time."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casnap.store import compressing
from support.stores import chunk, commit_session, make_store, pack_files

WORDS = st.lists(st.sampled_from([b"some ", b"words ", b"again ", b"and more "]), max_size=120).map(b"".join)
CONTENTS = WORDS | st.binary(max_size=300)
PUTS = st.lists(st.tuples(CONTENTS, st.none() | st.integers(0, 20)), min_size=1, max_size=20)
"""Contents, and which of the earlier ones each replaces."""


def _written(puts: list[tuple[bytes, int | None]], batch: int) -> list[tuple[object, ...]]:
    """The records of objects in the pack of a new store, in their order."""
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        patch.setattr(compressing, "BATCH", batch)
        store = make_store(Path(scratch) / "store")
        with store.session() as session:
            for at, (data, replaced) in enumerate(puts):
                base = chunk(puts[replaced][0]) if replaced is not None and replaced < at else None
                session.put(chunk(data), data, base)
            commit_session(store, session)
        (pack,) = pack_files(store.path)
        records = store.parts.reader.files.records(pack.stem, 0, pack.stat().st_size)
        found = [(record.offset, record.header, record.payload) for record in records if record.header.kind == 1]
        for data, _ in puts:
            assert store.read(chunk(data)) == data
        store.close()
    return found


@given(PUTS)
@settings(max_examples=10)
def test_a_pack_is_the_same_however_much_is_compressed_beside_the_rest(puts: list[tuple[bytes, int | None]]) -> None:
    alone = _written(puts, 1 << 30)
    assert _written(puts, 1) == alone
    assert _written(puts, 3) == alone
