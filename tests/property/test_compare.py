"""The plan between two trees: applied to the one it gives the other, and what is protected stays."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from casnap.codec.hashing import content_id, digest
from casnap.codec.trees import build_tree
from casnap.engine.compare import TreeView, plan_between
from casnap.model.paths import ancestors, is_within, join
from casnap.model.tree import AnyEntry, Directory, File, OmitReason, Omitted, Symlink
from support.scanning import MemoryStore

NAMES = st.sampled_from([b"a", b"b", b"a-b", b"\xff", b"z"])
MODES, TIMES = st.sampled_from([0o600, 0o755]), st.integers(0, 2)
LEAVES = st.one_of(
    st.tuples(st.just("file"), MODES, TIMES, st.sampled_from([b"", b"x", b"yy"])),
    st.tuples(st.just("link"), MODES, TIMES, st.sampled_from([b"to", b"from"])),
    st.just(("omitted",)),
)
TREES = st.recursive(
    LEAVES,
    lambda below: st.tuples(st.just("directory"), MODES, TIMES, st.dictionaries(NAMES, below, max_size=4)),
    max_leaves=14,
)
ROOTS = st.tuples(st.just("directory"), MODES, TIMES, st.dictionaries(NAMES, TREES, max_size=4))

Flat = dict[bytes, AnyEntry]


def built(store: MemoryStore, name: bytes, value: Any) -> AnyEntry:
    if value[0] == "omitted":
        return Omitted(name, int(OmitReason.IGNORED))
    kind, mode, time, content = value
    common = (name, mode, 0, 0, time, 0, ())
    if kind == "file":
        return File(*common, len(content), 0, content_id(content), b"")
    if kind == "link":
        return Symlink(*common, content)
    listing = tuple(built(store, child, content[child]) for child in sorted(content))
    tree = build_tree(listing)
    for key, data in tree.objects:
        store.put(key, data)
    return Directory(*common, tree.id, digest(listing))


def flat(value: Any, path: bytes = b"", name: bytes = b"", into: dict[bytes, Any] | None = None) -> dict[bytes, Any]:
    """Every path with what a change of it could show, straight from the drawn value."""
    found = {} if into is None else into
    found[path] = value[:3] if value[0] == "directory" else value
    if value[0] == "directory":
        for child, below in value[3].items():
            flat(below, join(path, child), child, found)
    return found


def views(old: Any, new: Any) -> tuple[TreeView, TreeView]:
    store = MemoryStore()
    roots = [built(store, b"", value) for value in (old, new)]
    assert all(isinstance(root, Directory) for root in roots)
    return TreeView(store, roots[0]), TreeView(store, roots[1])  # type: ignore[arg-type]


def shown(entry: AnyEntry | None) -> Any:
    match entry:
        case Directory():
            return ("directory", entry.mode, entry.mtime_s)
        case File():
            contents = {content_id(content): content for content in (b"", b"x", b"yy")}
            return ("file", entry.mode, entry.mtime_s, contents[entry.content])
        case Symlink():
            return ("link", entry.mode, entry.mtime_s, entry.target)
    return None


@given(old=ROOTS, new=ROOTS)
def test_applying_the_plan_gives_the_target_and_spares_what_is_protected(old: Any, new: Any) -> None:
    plan = plan_between(*views(old, new))
    before, target = flat(old), flat(new)
    after = dict(before)
    for change in plan.changes:
        assert shown(change.old) == before.get(change.path)
        if change.new is None:
            del after[change.path]
        else:
            after[change.path] = shown(change.new)
    protected = [item.path for item in plan.protected]
    spared = {path for path in before if any(is_within(path, item) for item in protected)}
    held = {above for item in protected for above in ancestors(item)}
    for path in spared:
        assert after[path] == before[path]
    for path in held:
        assert after[path][0] == before[path][0] == "directory"
    for path in (before.keys() | target.keys()) - spared - held:
        if any(is_within(path, item) for item in [*protected, *_omitted(target)]):
            continue  # what lies below something that is not known cannot be known
        if path in after or path in target:
            assert _same(after.get(path, ()), target.get(path, ())), path


def _omitted(tree: dict[bytes, Any]) -> list[bytes]:
    return [path for path, value in tree.items() if value == ("omitted",)]


def _same(left: Any, right: Any) -> bool:
    """Equal; a link's mode has no meaning."""
    if left[:1] == right[:1] == ("link",):
        return bool(left[2:] == right[2:])
    return bool(left == right)


@given(old=ROOTS)
def test_a_tree_does_not_differ_from_itself(old: Any) -> None:
    assert plan_between(*views(old, old)).changes == ()


@given(old=ROOTS, new=ROOTS, path=st.sampled_from([b"a", b"a/b", b"b/a", b"z"]))
def test_a_limited_plan_reaches_no_further_than_the_way_to_its_path(old: Any, new: Any, path: bytes) -> None:
    limited = plan_between(*views(old, new), (path,))
    whole = {change.path: change for change in plan_between(*views(old, new)).changes}
    for change in limited.changes:
        assert whole[change.path] == change
        within = is_within(change.path, path)
        on_the_way = (is_within(path, change.path) and shown(change.old) is None) or change.kind.value == "T"
        beneath_a_replaced_way = change.new is None and any(
            is_within(change.path, other.path) and other.kind.value == "T" for other in limited.changes
        )
        assert within or on_the_way or beneath_a_replaced_way
    assert {p for p in whole if is_within(p, path)} == {c.path for c in limited.changes if is_within(c.path, path)}


@given(old=ROOTS)
def test_a_walk_names_every_entry_once_parents_first(old: Any) -> None:
    view, _ = views(old, old)
    walked = [path for path, _ in view.walk()]
    assert sorted(walked) == sorted(flat(old))
    assert all(os.path.dirname(path) in walked[:index] for index, path in enumerate(walked) if path)
