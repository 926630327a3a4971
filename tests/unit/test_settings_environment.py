"""What the environment and the options come to."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from casnap.errors import Usage
from casnap.model.policy import DEFAULT_COMPRESSION, DEFAULT_WAIT, GIB, Policy
from casnap.settings import ROOT_STORE, load_settings, may_ask, wants_plain

ENVIRONMENT = {"HOME": "/home/somebody", "TERM": "xterm"}


class Stream:
    """A standard stream that is a terminal or is not."""

    def __init__(self, terminal: bool) -> None:
        self.closed = False
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def test_the_option_comes_before_the_environment() -> None:
    environ = {**ENVIRONMENT, "CASNAP_STORE": "/from/environment"}
    assert load_settings(environ, store="/from/option").store == Path("/from/option")
    assert load_settings(environ).store == Path("/from/environment")


def test_only_a_store_that_was_named_outright_is_explicit() -> None:
    environ = {**ENVIRONMENT, "CASNAP_STORE": "/from/environment"}
    assert load_settings(environ, store="/from/option").explicit
    assert not load_settings(environ).explicit


def test_a_relative_store_is_relative_to_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings(ENVIRONMENT, store="there").store == tmp_path / "there"


def test_an_empty_store_option_is_refused_and_an_empty_variable_is_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(Usage, match="--store is empty"):
        load_settings(ENVIRONMENT, store="")
    assert load_settings({**ENVIRONMENT, "CASNAP_STORE": ""}).store == ROOT_STORE


def test_the_store_of_root_is_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert load_settings({**ENVIRONMENT, "XDG_DATA_HOME": "/data"}).store == Path("/var/lib/casnap")


@pytest.mark.parametrize(
    ("extra", "store"),
    [
        ({"XDG_DATA_HOME": "/data"}, "/data/casnap"),
        ({"XDG_DATA_HOME": "relative"}, "/home/somebody/.local/share/casnap"),
        ({"XDG_DATA_HOME": ""}, "/home/somebody/.local/share/casnap"),
        ({}, "/home/somebody/.local/share/casnap"),
    ],
)
def test_the_store_of_a_user_is_below_their_data(
    extra: dict[str, str], store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    assert load_settings({**ENVIRONMENT, **extra}).store == Path(store)


@pytest.fixture
def alice(monkeypatch: pytest.MonkeyPatch) -> None:
    """An account for whoever runs the tests."""
    account = pwd.struct_passwd(("alice", "x", 1234, 1234, "", "/home/alice", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: account)


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user id without an account, as containers have."""

    def no_account(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", no_account)
    monkeypatch.setattr(os, "geteuid", lambda: 1234)


@pytest.mark.usefixtures("alice")
def test_without_home_the_account_says_where_home_is() -> None:
    assert load_settings({}, store="/s").home == b"/home/alice"
    assert load_settings({"HOME": "not/absolute"}, store="/s").home == b"/home/alice"


@pytest.mark.usefixtures("nobody")
def test_without_home_and_account_a_store_must_be_named() -> None:
    with pytest.raises(Usage, match="no place for a store"):
        load_settings({})
    settings = load_settings({"CASNAP_STORE": "/s"})
    assert (settings.store, settings.home, settings.origin.user) == (Path("/s"), None, "1234")


def test_home_is_taken_without_its_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert load_settings({"HOME": str(tmp_path / "link")}).home == os.fsencode(tmp_path / "real")


def test_what_is_not_set_has_its_default() -> None:
    settings = load_settings(ENVIRONMENT)
    assert settings.policy == Policy(min_free=None, compression=DEFAULT_COMPRESSION, wait=DEFAULT_WAIT)
    assert settings.workspace is None


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("4096", 4096), ("1K", 1024), ("2m", 2 << 20), ("1G", GIB), ("3T", 3 << 40), ("", None)],
)
def test_a_size_is_read_with_its_unit(text: str, size: int | None) -> None:
    assert load_settings({**ENVIRONMENT, "CASNAP_MIN_FREE": text}).policy.min_free == size


@pytest.mark.parametrize("text", ["1.5G", "-1", "lots", "1 G", "G", "1GB", "٣", "9" * 16])
def test_a_wrong_size_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(Usage, match="CASNAP_MIN_FREE"):
        load_settings({**ENVIRONMENT, "CASNAP_MIN_FREE": text})


@pytest.mark.parametrize("level", [1, 3, 19])
def test_a_compression_level_is_read(level: int) -> None:
    assert load_settings({**ENVIRONMENT, "CASNAP_COMPRESSION": str(level)}).policy.compression == level


@pytest.mark.parametrize("text", ["0", "20", "-1", "fast", "3.0", "٣", "100"])
def test_a_wrong_compression_level_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(Usage, match="CASNAP_COMPRESSION"):
        load_settings({**ENVIRONMENT, "CASNAP_COMPRESSION": text})


def test_the_wait_is_the_number_of_seconds_given() -> None:
    assert load_settings(ENVIRONMENT, wait=0).policy.wait == 0
    assert load_settings(ENVIRONMENT, wait=2.5).policy.wait == 2.5


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_wait_without_end_or_before_its_beginning_is_refused(seconds: float) -> None:
    with pytest.raises(Usage, match="bad wait"):
        load_settings(ENVIRONMENT, wait=seconds)


@pytest.mark.parametrize(
    ("extra", "agent"),
    [
        ({}, ""),
        ({"CLAUDECODE": "1"}, "claude-code"),
        ({"CLAUDECODE": ""}, ""),
        ({"CLAUDECODE_X": "1"}, ""),
        ({"GEMINI_CLI": "1"}, "gemini"),
        ({"CODEX_SANDBOX": "seatbelt"}, "codex"),
        ({"OPENCODE": "1"}, "opencode"),
        ({"OPENCODE_SERVER": "x"}, "opencode"),
    ],
)
@pytest.mark.usefixtures("alice")
def test_the_origin_names_the_agent_whose_sign_is_set(extra: dict[str, str], agent: str) -> None:
    origin = load_settings({**ENVIRONMENT, **extra}).origin
    assert origin.agent == agent
    assert origin.user == "alice"
    assert origin.host == os.uname().nodename
    assert origin.process == str(os.getpid())


def test_the_boot_is_the_kernels() -> None:
    assert load_settings(ENVIRONMENT).boot == Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def test_a_person_at_a_terminal_may_be_asked() -> None:
    assert may_ask(ENVIRONMENT, Stream(True), Stream(True))


@pytest.mark.parametrize(("stdin", "stderr"), [(False, True), (True, False), (False, False)])
def test_without_a_terminal_on_both_sides_nobody_is_asked(stdin: bool, stderr: bool) -> None:
    assert not may_ask(ENVIRONMENT, Stream(stdin), Stream(stderr))


@pytest.mark.parametrize(
    "sign", ["CASNAP_NO_INPUT", "CI", "CLAUDECODE", "GEMINI_CLI", "CODEX_HOME", "OPENCODE", "OPENCODE_PID"]
)
def test_a_script_or_an_agent_is_not_asked(sign: str) -> None:
    assert not may_ask({**ENVIRONMENT, sign: "1"}, Stream(True), Stream(True))


def test_a_closed_or_missing_stream_asks_nobody() -> None:
    gone = Stream(True)
    gone.closed = True
    assert not may_ask(ENVIRONMENT, None, Stream(True))
    assert not may_ask(ENVIRONMENT, Stream(True), gone)


@pytest.mark.parametrize(
    ("extra", "plain"),
    [({}, False), ({"NO_COLOR": "1"}, True), ({"NO_COLOR": ""}, False), ({"TERM": "dumb"}, True)],
)
def test_plain_text_is_wanted_where_the_environment_says_so(extra: dict[str, str], plain: bool) -> None:
    assert wants_plain({**ENVIRONMENT, **extra}) is plain


def test_a_directory_that_was_removed_is_where_the_shell_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load_settings({**ENVIRONMENT, "PWD": str(gone)}).cwd == os.fsencode(gone)
    assert load_settings(ENVIRONMENT).cwd is None
