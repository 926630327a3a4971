"""Files that hold secrets: captured, left out, or captured without their values; a rollback never loses one."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap import CheckpointManager
from casnap.engine.recorded import tree_of
from casnap.model.policy import Selection, Sensitive
from casnap.model.tree import File, FileFlag, OmitReason, Omitted
from casnap.settings import load_settings, open_context
from casnap.workspace.redaction import MAX_REDACTED, redacted
from support.oracle import difference, snapshot
from support.scanning import MemoryStore, entries_of, take

KEEP, SKIP, REDACT = Sensitive
ENV = "# the database\nexport DB_PASSWORD = 'hunter2'\r\n\nTOKEN=abc=def\n#OLD=secret\nEMPTY=\n"
KEYS = "# the database\nexport DB_PASSWORD =\n\nTOKEN=\n#OLD=\nEMPTY="


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (ENV.encode(), KEYS.encode() + b"\n"),
        (b"", b""),
        (b"a.b=1", b"a.b="),
        (b'A="x y" # why', b"A="),
        (b"A='it''s'", b"A="),
        (b"\tA = 1\n", b"\tA =\n"),
        ("# ü\nA=ü".encode(), "# ü\nA=".encode()),
        (b"A=1\n# just\n# words=no", b"A=\n# just\n# words="),
    ],
)
def test_values_are_taken_out_and_all_else_stays(text: bytes, keys: bytes) -> None:
    assert redacted(text) == keys


@pytest.mark.parametrize(
    "text",
    [
        b"# only words\n",
        b"plain text",
        b"A=1\nplain",
        b"key: value",
        b'{"A": 1}',
        b"-----BEGIN KEY-----\nQUJDREVGR0g=\n-----END KEY-----",
        b"A=1\nQUJDREVGR0g=",
        b"A=1\nQUJDREVGR0g==",
        b'A="first\nB=second"',
        b"A='first\nsecond'",
        b"A=first\\\nB=2",
        b"A=1\0",
        b"A=\xff",
        b"1A=2",
        b"A" * 65 + b"=1",
        b"=1",
        b"A=1\n" * (MAX_REDACTED // 4 + 1),
    ],
)
def test_what_may_hide_a_value_is_of_another_kind(text: bytes) -> None:
    assert redacted(text) is None


@given(st.dictionaries(st.from_regex(r"[A-Z][A-Z0-9_]{0,9}", fullmatch=True), st.text("xyz\"'\\=# ", max_size=9)))
def test_no_value_is_in_what_is_stored(values: dict[str, str]) -> None:
    keys = redacted("".join(f"{key}={value}\n" for key, value in values.items()).encode())
    assert keys is None or keys == "".join(f"{key}=\n" for key in values).encode()


def selection(policy: Sensitive) -> Selection:
    return Selection(sensitive=policy)


def test_each_policy_does_what_it_says_and_only_to_regular_files_outside_git(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(ENV)
    (tmp_path / "plain").write_text(ENV)
    (tmp_path / "a.pem").write_bytes(b"-----BEGIN")
    (tmp_path / "id_dir").mkdir()
    (tmp_path / "id_dir" / "x").touch()
    (tmp_path / "id_link").symlink_to("plain")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "id_rsa").write_bytes(b"key")

    assert take(tmp_path, selection=selection(KEEP)).skipped == []
    skipped = take(tmp_path, selection=selection(SKIP)).skipped
    assert skipped == [(b".env", OmitReason.SENSITIVE), (b"a.pem", OmitReason.SENSITIVE)]

    store = MemoryStore()
    scan = take(tmp_path, store, selection=selection(REDACT))
    assert scan.skipped == [(b"a.pem", OmitReason.SENSITIVE)]
    entries = entries_of(store, scan.root)
    env, plain = entries[b".env"], entries[b"plain"]
    assert isinstance(env, File)
    assert isinstance(plain, File)
    assert (env.flags, plain.flags) == (FileFlag.REDACTED, 0)
    assert (env.size, plain.size) == (len(KEYS) + 1, len(ENV) + 1 - 1)
    assert KEYS.encode() + b"\n" in store.objects.values()


def test_of_a_redacted_file_no_byte_of_a_value_is_put(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PASSWORD=hunter2\n")
    (tmp_path / ".env.bin").write_bytes(b"hunter2\0")
    os.link(tmp_path / ".env", tmp_path / "id_other")
    store = MemoryStore()
    scan = take(tmp_path, store, selection=selection(REDACT))
    assert scan.links == ()
    assert not [data for data in store.objects.values() if b"hunter2" in data]


def test_a_redacted_file_is_no_hard_link_of_its_other_names(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(ENV)
    os.link(tmp_path / ".env", tmp_path / "copy")
    os.link(tmp_path / ".env", tmp_path / "other")
    store = MemoryStore()
    scan = take(tmp_path, store, selection=selection(REDACT))
    assert scan.links == ((b"copy", b"other"),)
    entries = entries_of(store, scan.root)
    assert [entries[name].flags for name in (b".env", b"copy", b"other")] == [4, 0, 0]  # type: ignore[union-attr]


@pytest.mark.parametrize(("first", "second"), [(KEEP, REDACT), (REDACT, KEEP)])
def test_a_change_of_policy_reads_what_the_cache_knows_anew(
    tmp_path: Path, first: Sensitive, second: Sensitive
) -> None:
    (tmp_path / ".env").write_text(ENV)
    os.utime(tmp_path / ".env", ns=(10**18, 10**18))
    cache = take(tmp_path, selection=selection(first)).cache
    store = MemoryStore()
    scan = take(tmp_path, store, cache=cache, selection=selection(second))
    assert scan.files_read == 1
    assert entries_of(store, scan.root)[b".env"].flags == (4 if second is REDACT else 0)  # type: ignore[union-attr]
    assert take(tmp_path, cache=scan.cache, selection=selection(second)).files_read <= 1


def test_a_live_database_with_a_sensitive_name_is_not_copied(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASNAP_SQLITE_CONSISTENT", "true")
    database = sqlite3.connect(workspace / "id_store.db")
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE t (secret TEXT)")
    database.commit()
    for policy in (SKIP, REDACT):
        monkeypatch.setenv("CASNAP_SENSITIVE_POLICY", policy)
        assert _entry(workspace, "id_store.db", f"c-{policy}") == Omitted(b"id_store.db", OmitReason.SENSITIVE)
    database.close()


def test_what_belongs_to_a_database_with_a_sensitive_name_goes_its_way(tmp_path: Path) -> None:
    for name in ("x.db", "x.db-wal", "x.db-shm"):
        (tmp_path / name).write_bytes(b"\0secret")
    for policy in (SKIP, REDACT):
        found = take(tmp_path, selection=Selection(sensitive=policy, sensitive_patterns=("*.db",)))
        assert {path for path, _ in found.skipped} == {b"x.db", b"x.db-wal", b"x.db-shm"}


def _entry(workspace: Path, name: str, checkpoint: str) -> object:
    with CheckpointManager(workspace) as manager:
        made = manager.create(checkpoint)
    context = open_context(load_settings())
    try:
        return tree_of(context, made).entry(os.fsencode(name))
    finally:
        context.store.close()


class Story:
    """A workspace whose policy changes, and what becomes of its ``.env``."""

    def __init__(self, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.workspace, self.env, self.monkeypatch = workspace, workspace / ".env", monkeypatch
        (workspace / "a").write_text("1")

    def checkpoint(self, policy: Sensitive, text: str | None) -> None:
        self.stands(policy, text)
        with CheckpointManager(self.workspace) as manager:
            manager.create("then")

    def stands(self, policy: Sensitive, text: str | None) -> None:
        self.monkeypatch.setenv("CASNAP_SENSITIVE_POLICY", policy)
        self.env.unlink(missing_ok=True)
        if text is not None:
            self.env.write_text(text)

    def roll_back(self) -> tuple[str | None, tuple[bytes, ...], list[bytes]]:
        """What ``.env`` holds afterwards, what was kept, and what was left alone.

        Undo brings the rest back; of a file whose values it does not have it takes none away.
        """
        (self.workspace / "a").write_text("2")
        before = snapshot(self.workspace)
        with CheckpointManager(self.workspace) as manager:
            report = manager.rollback("then")
            found = self.env.read_text() if self.env.exists() else None
            assert (self.workspace / "a").read_text() == "1"
            manager.undo()
            came_back = found is not None and b".env" not in before
            assert difference(before, snapshot(self.workspace)) == ["b'.env': file only after"] * came_back
        return found, report.kept, [problem.path for problem in report.left_alone]


@pytest.fixture
def story(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    return Story(workspace, monkeypatch)


NEW = "DB_PASSWORD=other\n"


@pytest.mark.parametrize(
    ("then", "was", "now", "is_", "after", "kept", "left"),
    [
        (REDACT, ENV, REDACT, ENV.replace("hunter2", "x"), ENV.replace("hunter2", "x"), (), []),
        (REDACT, ENV, REDACT, NEW, NEW, (b".env",), []),
        (REDACT, ENV, KEEP, NEW, NEW, (b".env",), []),
        (REDACT, ENV, SKIP, NEW, NEW, (), [b".env"]),
        (REDACT, ENV, REDACT, None, None, (), [b".env"]),
        (REDACT, ENV, KEEP, None, None, (), [b".env"]),
        (REDACT, None, REDACT, NEW, NEW, (b".env",), []),
        (KEEP, ENV, REDACT, NEW, NEW, (), [b".env"]),
        (KEEP, ENV, REDACT, None, ENV, (), []),
        (KEEP, None, REDACT, NEW, NEW, (b".env",), []),
        (KEEP, None, REDACT, "no keys", "no keys", (b".env",), []),
        (SKIP, ENV, KEEP, NEW, NEW, (b".env",), []),
        (SKIP, None, KEEP, NEW, NEW, (b".env",), []),
        (SKIP, None, SKIP, NEW, NEW, (b".env",), []),
        (KEEP, ENV, SKIP, NEW, NEW, (), [b".env"]),
        (KEEP, ENV, SKIP, None, ENV, (), []),
    ],
)
def test_a_rollback_leaves_a_live_file_whose_values_are_not_stored(
    story: Story,
    then: Sensitive,
    was: str | None,
    now: Sensitive,
    is_: str | None,
    after: str | None,
    kept: tuple[bytes, ...],
    left: list[bytes],
) -> None:
    story.checkpoint(then, was)
    story.stands(now, is_)
    assert story.roll_back() == (None if after is None else after.replace("\r\n", "\n"), kept, left)


def test_what_is_written_elsewhere_without_its_values_is_said(story: Story, tmp_path: Path) -> None:
    story.checkpoint(REDACT, ENV)
    with CheckpointManager(story.workspace) as manager:
        report = manager.restore_to(tmp_path / "out", "then")
    assert [problem.path for problem in report.problems] == [b".env"]
    assert (tmp_path / "out" / ".env").read_text() == KEYS + "\n"


def test_a_directory_where_a_redacted_file_stands_is_not_put_in_its_place(story: Story) -> None:
    story.stands(KEEP, None)
    story.env.mkdir()
    (story.env / "inside").write_text("x")
    with CheckpointManager(story.workspace) as manager:
        manager.create("then")
    (story.env / "inside").unlink()
    story.env.rmdir()
    story.stands(REDACT, NEW)
    assert story.roll_back() == (NEW, (), [b".env"])


def test_the_rules_of_a_checkpoint_tell_its_policy_only_where_it_matters(tmp_path: Path) -> None:
    assert take(tmp_path).rules == ("exclude-caches",)
    chosen = Selection(sensitive=SKIP, sensitive_patterns=("a b", "*.k\tx"), include_git=False)
    assert take(tmp_path, selection=chosen).rules == (
        "exclude-caches",
        "exclude-git",
        "sensitive skip",
        "sensitive-name a b",
        "sensitive-name *.k\\tx",
    )
