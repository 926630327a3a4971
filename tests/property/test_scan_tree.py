"""Laws of the scan, over trees and changes that Hypothesis draws."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from casnap.codec.hashing import digest
from casnap.codec.trees import load_listing
from casnap.model.tree import Directory
from casnap.workspace.cache_file import load_cache
from casnap.workspace.cache_saving import encode_cache
from support.scanning import MemoryStore, entries_of, facts_of, facts_on_disk, take

NAMES = st.sampled_from([b"a", b"b", b"c", b"\xff", b"\xc3\xa9", b".git", b"x.lock"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
DATA = st.binary(max_size=3) | st.sampled_from([bytes(9000), b"long" * 300_000])
STAMPS = st.integers(-(10**18), 10**19 // 2)

ACTS = st.one_of(
    st.tuples(st.just("write"), PATHS, DATA),
    st.tuples(st.just("make"), PATHS),
    st.tuples(st.just("link"), PATHS, PATHS),
    st.tuples(st.just("fifo"), PATHS),
    st.tuples(st.just("join"), PATHS, PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.just("remove"), PATHS),
    st.tuples(st.just("mode"), PATHS, st.sampled_from([0o700, 0o755, 0o4711, 0o1777])),
    st.tuples(st.just("time"), PATHS, STAMPS),
    st.tuples(st.just("attribute"), PATHS, st.binary(max_size=4)),
    st.tuples(st.just("scan")),
)


def perform(root: bytes, act: str, path: bytes, *rest: Any) -> None:
    place = os.path.join(root, path)
    match act:
        case "write":
            with open(
                os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK), "wb"
            ) as file:
                file.write(rest[0])
        case "make":
            os.makedirs(place)
        case "link":
            os.symlink(rest[0], place)
        case "fifo":
            os.mkfifo(place)
        case "join":
            os.link(os.path.join(root, rest[0]), place, follow_symlinks=False)
        case "rename":
            os.rename(os.path.join(root, rest[0]), place)
        case "remove":
            shutil.rmtree(place) if stat.S_ISDIR(os.lstat(place).st_mode) else os.unlink(place)
        case "mode" if not os.path.islink(place):
            os.chmod(place, rest[0])
        case "time":
            os.utime(place, ns=(rest[0], rest[0]), follow_symlinks=False)
        case "attribute":
            os.setxattr(place, b"user.k", rest[0], follow_symlinks=False)


def groups_on_disk(root: bytes) -> tuple[tuple[bytes, ...], ...]:
    names: dict[int, list[bytes]] = defaultdict(list)
    for directory, _, files in os.walk(root):
        for name in files:
            path = os.path.join(directory, name)
            names[os.lstat(path).st_ino].append(os.path.relpath(path, root))
    return tuple(sorted(tuple(sorted(paths)) for paths in names.values() if len(paths) > 1))


def is_lock(path: bytes) -> bool:
    *above, name = path.split(b"/")
    return b".git" in above and name.endswith(b".lock")


@settings(max_examples=60)
@given(st.lists(ACTS, min_size=5, max_size=25))
def test_a_scan_with_a_cache_finds_what_one_without_finds_and_both_what_is_there(acts: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        root, file = os.path.join(os.fsencode(place), b"workspace"), Path(place) / "cache"
        names = {"store": "s", "workspace": "w", "boot": "b"}
        os.mkdir(root)
        store = MemoryStore()
        for act in [*acts, ("scan",)]:
            if act[0] != "scan":
                with contextlib.suppress(OSError):
                    perform(root, *act)
                continue
            fresh = take(root)
            scan = take(root, store, cache=load_cache(file, **names))
            file.write_bytes(encode_cache(scan.cache, **names, checkpoint=b"c" * 32))
            locks = {path for path in facts_on_disk(root) if is_lock(path) and os.path.isfile(os.path.join(root, path))}
            locks = {path for path in locks if not os.path.islink(os.path.join(root, path))}
            assert (scan.root, scan.links, scan.signatures) == (fresh.root, fresh.links, fresh.signatures)
            assert facts_of(store, scan.root) == {
                path: facts for path, facts in facts_on_disk(root).items() if path not in locks
            }
            assert scan.links == tuple(
                group for names_ in groups_on_disk(root) if len(group := tuple(p for p in names_ if p not in locks)) > 1
            )
            assert {path for path, _ in scan.skipped} == locks
            assert scan.problems == []


@settings(max_examples=30)
@given(st.lists(st.tuples(PATHS, DATA), max_size=8))
def test_every_directory_has_the_digest_of_its_listing(files: list[tuple[bytes, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        for path, data in files:
            target = os.path.join(os.fsencode(place), path)
            with contextlib.suppress(OSError):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                Path(os.fsdecode(target)).write_bytes(data)
        store = MemoryStore()
        scan = take(place, store)
        for entry in entries_of(store, scan.root).values():
            if isinstance(entry, Directory):
                assert entry.digest == digest(load_listing(store, entry.tree))
