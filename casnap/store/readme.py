"""``README.txt``: for a person who comes across a store, perhaps where nothing knows casnap any more."""

from __future__ import annotations

import datetime as dt

from casnap.model.tree import NANOSECONDS

_ABOUT = """\
This directory is a casnap store: it holds checkpoints of one or more directories.

  of        {owner}
  store id  {id}
  made on   {date}

Do not change or delete single files in here. With casnap:
  casnap --store DIR list --all     what is in it
  casnap --help                     everything else

To remove it: `casnap forget` for each directory that is protected, which leaves
their files as they are, then `rm -r` this one. Nothing else refers to it.

  packs/*.pack   all content, only ever appended to: records with a zstd frame each,
                 under the BLAKE3 hash of what is in it
  oplog/*.jsonl  what has happened, one JSON object a line; "hash" is the SHA-256 of
                 the line up to before ,"hash":" and "prev" is the one of the line before
  all else       can be made anew from these two

Without casnap: this Python, with the package zstandard, writes every chunk into the
directory OUT. A chunk is a whole file of up to 1 MiB, or a part of a longer one. It is
called by the first 16 digits of what b3sum prints for it; where these differ it is
damaged. Names of files, and which chunks are a long file, are in other records, as
MessagePack: docs/format in the source of casnap describes them.

"""

_RECIPE = """\
--- chunks.py: python3 chunks.py STORE OUT ---
import pathlib, struct, sys, zstandard
store, out = map(pathlib.Path, sys.argv[1:3])
out.mkdir(exist_ok=True)
for pack in sorted(store.glob("packs/*.pack")):
    data, at, names = pack.read_bytes(), 0, {}
    while (at := data.find(b"\\xc5rec", at)) >= 0:
        here, at, base = at, at + 8, None
        try:
            head = struct.unpack_from("<4B2I8sIH", data, here + 4)
            kind, how, _, form, size, raw, id, back, slot = head
            start = here + (72 if form & 2 else 40)
            body = data[start : start + size]
            if kind in (1, 5, 6, 8) and how > 1:  # 3: a difference to another, 4: several
                if how == 3:
                    other = names[here - back, slot] if form & 1 else data[here + 40 :][:8].hex()
                    base = zstandard.ZstdCompressionDict((out / other).read_bytes(), 1)
                body = zstandard.ZstdDecompressor(dict_data=base).decompress(body, raw)
            if kind == 1:
                names[here, 0] = id.hex()
                (out / id.hex()).write_bytes(body)
            if kind == 5:
                end = 4 + 5 * struct.unpack_from("<I", body)[0]
                for slot, (inner, length) in enumerate(struct.iter_unpack("<BI", body[4:end]), 1):
                    if inner == 1:
                        names[here, slot] = f"{pack.stem}-{here}-{slot - 1}"
                        (out / names[here, slot]).write_bytes(body[end : end + length])
                    end += length
            if kind in (6, 8):  # what the objects of groups that lie before are called
                many, = struct.unpack_from("<I", body)
                places = struct.unpack_from(f"<{many}H{many}I", body, 4 + many)
                for n, slot in enumerate(places[:many]):
                    group = 8 * sum(places[many : many + n + 1])
                    if slot and (group, slot) in names:
                        name = body[4 + 7 * many + 32 * n :][:8].hex()
                        (out / names[group, slot]).rename(out / name)
                        names[group, slot] = name
            at = start + size + 8
        except (KeyError, OSError, struct.error, zstandard.ZstdError) as error:
            print(pack.name, "at", here, "was skipped; once more may help:", error)
"""


def readme(store_id: str, *, uid: int, user: str, made: int) -> bytes:
    """The text, ASCII: whose store it is, what it is, and how to read it without casnap.

    ``user`` may be empty; ``made`` is nanoseconds since the epoch.
    """
    owner = f"{user} (uid {uid})" if user else f"uid {uid}"
    date = dt.datetime.fromtimestamp(made // NANOSECONDS, dt.UTC).strftime("%Y-%m-%d")
    return (_ABOUT.format(owner=owner, id=store_id, date=date) + _RECIPE).encode("ascii", "backslashreplace")
