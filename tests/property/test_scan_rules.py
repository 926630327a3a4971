"""A scan that believes a cache file finds what one without finds, whatever leaves entries out."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from casnap.model.policy import Selection
from casnap.workspace.cache_file import load_cache
from casnap.workspace.cache_saving import encode_cache
from support.scanning import MemoryStore, settle, take

TAG = b"Signature: 8a477f597d28d172789f06886806bc55\n"
DIRECTORIES = st.sampled_from(["", "a", "a/b", "a/b/c", "d"])
NAMES = st.sampled_from(["f", "g.log", "h.db", "h.db-wal", ".env"])
SPECIAL = st.sampled_from([".casnapignore", ".gitignore", "CACHEDIR.TAG", ".git/HEAD", ".git/info/exclude"])
RULES = st.sampled_from(["*.log\n", "b/\n", "!g.log\n", "c\n", "", "/a/f\n", "h.db\n"])
SELECTIONS = st.builds(
    Selection,
    exclude=st.sampled_from([b"", b"*.log\n"]),
    use_gitignore=st.booleans(),
    exclude_caches=st.booleans(),
    max_file_size=st.sampled_from([None, 10]),
)
ACTS = st.one_of(
    st.tuples(st.just("write"), DIRECTORIES, NAMES, st.integers(0, 2), st.sampled_from([3, 4, 20])),
    st.tuples(st.just("rules"), DIRECTORIES, SPECIAL, RULES),
    st.tuples(st.just("tag"), DIRECTORIES, st.booleans()),
    st.tuples(st.just("remove"), DIRECTORIES, st.one_of(NAMES, SPECIAL)),
    st.tuples(st.just("link"), DIRECTORIES, NAMES, DIRECTORIES, NAMES),
    st.tuples(st.just("clear"), DIRECTORIES),
    st.tuples(st.just("choose"), SELECTIONS),
    st.just(("scan",)),
    st.just(("scan",)),
)


def perform(root: Path, act: tuple[Any, ...]) -> None:
    verb, directory, *rest = act
    place = root / directory
    place.mkdir(parents=True, exist_ok=True)
    match verb:
        case "write":
            (place / rest[0]).write_bytes(b"%d" % rest[1] * rest[2])
        case "rules":
            (place / rest[0]).parent.mkdir(parents=True, exist_ok=True)
            (place / rest[0]).write_text(rest[1])
        case "tag":
            (place / "CACHEDIR.TAG").write_bytes(TAG if rest[0] else TAG.lower())
        case "remove":
            (place / rest[0]).unlink()
        case "link":
            os.link(place / rest[0], root / rest[1] / rest[2])
        case "clear" if directory:
            shutil.rmtree(place)


@settings(max_examples=60, deadline=None)
@example(
    [
        ("rules", "", ".git/info/exclude", "*.log\n"),
        ("choose", Selection(use_gitignore=True)),
        ("scan",),
        ("write", "", "f", 1, 3),
    ]
)
@given(st.lists(ACTS, min_size=6, max_size=30))
def test_what_rules_leave_out_is_the_same_with_and_without_a_cache(acts: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as above:
        root, file = Path(above) / "workspace", Path(above) / "cache"
        root.mkdir()
        names = {"store": "s", "workspace": "w", "boot": "b"}
        store, selection = MemoryStore(), Selection()
        for act in [*acts, ("scan",), ("scan",)]:
            if act[0] == "choose":
                selection = act[1]
            elif act[0] != "scan":
                with contextlib.suppress(OSError):
                    perform(root, act)
            else:
                settle(root)
                fresh = take(root, selection=selection)
                scan = take(root, store, cache=load_cache(file, **names), selection=selection)
                file.write_bytes(encode_cache(scan.cache, **names, checkpoint=b"c" * 32))
                assert (scan.root, scan.links, scan.rules) == (fresh.root, fresh.links, fresh.rules)
                assert (scan.skipped, scan.problems, scan.remarks) == (fresh.skipped, fresh.problems, fresh.remarks)
                assert (scan.entries, scan.unsure) == (fresh.entries, fresh.unsure)
