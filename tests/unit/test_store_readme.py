"""``README.txt`` in a store: true, short, and enough to get the bytes out without casnap."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import zstandard
from blake3 import blake3

from casnap import CheckpointManager
from casnap.codec.compression import Encoding, compress_delta
from casnap.codec.packs import encode_pack_header
from casnap.codec.records import RecordKind, encode_group, encode_record
from casnap.engine.gc import collect
from casnap.engine.gc_terms import REPACKING
from casnap.settings import load_settings, open_context
from casnap.store.creation import create
from casnap.store.layout import Layout
from support.stores import POLICY, Ticking, chunk, noise


def store_of(home: Path) -> Path:
    return home / "store"


def run_recipe(store: Path, out: Path) -> str:
    """Cut the program out of the README as a person would, and run it with a Python that knows nothing of casnap."""
    text = (store / "README.txt").read_text("ascii")
    program = out.with_name("chunks.py")
    program.write_text(text.partition("--- chunks.py: python3 chunks.py STORE OUT ---\n")[2])
    package = Path(zstandard.__file__).parent
    plain = out.with_name("plain")
    plain.mkdir(exist_ok=True)
    (plain / "zstandard").unlink(missing_ok=True)
    (plain / "zstandard").symlink_to(package)
    done = subprocess.run(
        [sys.executable, "-S", program, store, out],
        env={"PYTHONPATH": str(plain)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def prefix(data: bytes) -> str:
    return blake3(data).hexdigest()[:16]


def test_it_says_whose_store_it_is_and_how_it_goes_away(
    workspace: Path, manager: CheckpointManager, home: Path
) -> None:
    manager.create()
    text = (store_of(home) / "README.txt").read_bytes().decode("ascii")
    assert len(text.splitlines()) <= 66
    assert max(map(len, text.splitlines())) <= 100
    assert f"{pwd.getpwuid(os.geteuid()).pw_name} (uid {os.geteuid()})" in text
    about = (store_of(home) / "casnap-store.json").read_text()
    (id,) = [line.split()[-1] for line in text.splitlines() if "store id" in line]
    assert f'"{id}"' in about
    for words in ("casnap forget", "rm -r", "zstd", "BLAKE3", "SHA-256", "casnap --store DIR list --all"):
        assert words in text


def test_the_date_is_that_of_the_store_and_an_odd_name_stays_ascii(tmp_path: Path) -> None:
    create(Layout(tmp_path / "store"), clock=Ticking(), policy=POLICY, explicit=False, user="Zoë")
    text = (tmp_path / "store" / "README.txt").read_bytes().decode("ascii")
    assert "made on   2023-11-14\n" in text
    assert f"of        Zo\\xeb (uid {os.geteuid()})\n" in text


def test_the_recipe_writes_the_bytes_of_every_chunk(
    workspace: Path, manager: CheckpointManager, home: Path, tmp_path: Path
) -> None:
    contents = [b"", b"a", b"text\n" * 9000, noise(1, 5000), b"\xc5rec" * 400, noise(2, 1 << 20)]
    for number, data in enumerate(contents):
        (workspace / str(number)).write_bytes(data)
    long = noise(3, 3 << 20) + bytes(1 << 20)
    (workspace / "long").write_bytes(long)
    manager.create()
    assert run_recipe(store_of(home), tmp_path / "out") == ""
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for data in contents:
        assert written.pop(prefix(data)) == data
    assert all(name == prefix(data) for name, data in written.items())
    assert all(data in long for data in written.values())
    assert sum(len(data) for data in written.values()) >= 3 << 20  # each run of zeros is there once


def test_the_recipe_undoes_differences_and_takes_groups_apart(
    workspace: Path, manager: CheckpointManager, home: Path, tmp_path: Path
) -> None:
    manager.create()
    base, near, far, one, two = noise("base"), noise("base") + b"!", noise("base")[:-9], b"one", noise("two")
    records = [encode_record(RecordKind.CHUNK, chunk(base).id, Encoding.RAW, base, len(base))]
    delta = compress_delta(near, base, 3)
    back = len(records[0])
    records.append(
        encode_record(RecordKind.CHUNK, chunk(near).id, Encoding.DELTA, delta, len(near), base_distance=back, depth=1)
    )
    records.append(encode_group([(chunk(one), one), (chunk(two), two)], 3))
    delta = compress_delta(far, base, 3)
    other = encode_record(
        RecordKind.CHUNK, chunk(far).id, Encoding.DELTA, delta, len(far), base_id=chunk(base).id, depth=1
    )
    for name, parts in (("f" * 32, records), ("0" * 32, [other])):
        header = encode_pack_header(bytes.fromhex(name), bytes(16))
        (store_of(home) / "packs" / f"{name}.pack").write_bytes(b"".join([header, *parts]))
    first = run_recipe(store_of(home), tmp_path / "out")
    assert first.count("\n") == 1  # the base comes later
    assert f"{'0' * 32}.pack at 64 was skipped" in first
    assert run_recipe(store_of(home), tmp_path / "out") == ""
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for data in (base, near, far):
        assert written[prefix(data)] == data
    at = 64 + sum(map(len, records[:2]))
    assert [written[f"{'f' * 32}-{at}-{slot}"] for slot in (0, 1)] == [one, two]


def test_the_recipe_names_what_is_in_groups_and_undoes_differences_to_it(
    workspace: Path, manager: CheckpointManager, home: Path, tmp_path: Path
) -> None:
    contents = [b"".join(b"line %d of %d\n" % (n, number) for n in range(90)) for number in range(4)]
    for number, data in enumerate(contents):
        (workspace / str(number)).write_bytes(data)
    manager.create()
    context = open_context(load_settings())
    assert collect(context, REPACKING).repacked == 1
    context.store.close()
    (workspace / "2").write_bytes(contents[2] + b"one line more\n")
    manager.create()
    run_recipe(store_of(home), tmp_path / "out")
    assert run_recipe(store_of(home), tmp_path / "out") == ""
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert written == {prefix(data): data for data in [*contents, contents[2] + b"one line more\n"]}


def test_the_recipe_goes_on_behind_damage(
    workspace: Path, manager: CheckpointManager, home: Path, tmp_path: Path
) -> None:
    (workspace / "a").write_bytes(b"first " * 500)
    (workspace / "b").write_bytes(b"second " * 500)
    manager.create()
    (pack,) = (store_of(home) / "packs").iterdir()
    data = bytearray(pack.read_bytes())
    at = data.find(b"\xc5rec", data.find(b"\xc5rec") + 4)  # behind the session's record
    data[at + 40 : at + 44] = b"\0" * 4
    pack.write_bytes(data)
    assert f"at {at} was skipped" in run_recipe(store_of(home), tmp_path / "out")
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert [prefix(found) for found in written.values()] == list(written)
    assert len(written) == 1
