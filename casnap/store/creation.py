"""Making a store, and the checks that come before one is used."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from casnap.errors import Damage, NoStore, Refused
from casnap.fs.appending import Owner, give, make_file, make_private_directory
from casnap.fs.durable import failed, make_directory, sync_directory, write_whole
from casnap.fs.locks import locked
from casnap.store import media
from casnap.store.format import Format, decode_format, encode_format, new_format
from casnap.store.layout import Layout
from casnap.store.oplog import Oplog
from casnap.store.rows import START
from casnap.store.space import reserve_size

if TYPE_CHECKING:
    from casnap.model.clock import Clock
    from casnap.model.policy import Policy

CHECK = "run `casnap check` to see what is lost, and with --repair to mend it"


def check_owner(root: Path, *, explicit: bool) -> Owner | None:
    """Whom new files must be given to; None when simply nobody else is concerned.

    Raises:
        NoStore: there is no such directory.
        Refused: it belongs to another user, and this is not root with ``explicit``.
    """
    try:
        status = os.stat(root)
    except (FileNotFoundError, NotADirectoryError):
        raise _no_store(root) from None
    except OSError as error:
        raise failed("open store", root, error) from error
    if not stat.S_ISDIR(status.st_mode):
        raise _no_store(root)
    user = os.geteuid()
    if status.st_uid == user:
        return None
    if user == 0 and explicit:
        return status.st_uid, status.st_gid
    raise Refused(
        f"cannot use store {root}: it belongs to uid {status.st_uid}, and you are uid {user}",
        code="foreign-store",
        hint=f"run sudo casnap --store {root}, or give a store of your own with --store",
        details={"store": os.fsdecode(root), "uid": status.st_uid},
    )


def read_format(layout: Layout) -> Format:
    """The store's format, from its file or, where that is gone or damaged, from its first operation.

    Raises:
        NoStore: it has neither.
        TooNew: it is of a newer format.
        Damage: neither can be read.
    """
    try:
        return decode_format(layout.format.read_bytes(), str(layout.format))
    except FileNotFoundError:
        damage: Damage | NoStore = _no_store(layout.root)
        if layout.pack_ids():  # a creation that was killed has left none
            damage = Damage(f"cannot open store {layout.root}: its format file is gone")
    except OSError as error:
        raise failed("read", layout.format, error) from error
    except Damage as error:
        damage = error
    from casnap.codec.lines import decode_line  # here and below, since most stores are there, and whole
    from casnap.model.operation import StoreCreated

    try:
        with open(layout.segment(START.segment), "rb") as segment:
            operation, _ = decode_line(segment.readline())
    except (OSError, Damage):
        raise damage from None
    if not isinstance(operation, StoreCreated):
        raise damage
    return decode_format(msgspec.json.encode(operation.format), str(layout.root))


@contextlib.contextmanager
def mendable() -> Iterator[None]:
    """Damage of the store as a whole says how it can be mended."""
    try:
        yield
    except Damage as damage:
        damage.hint = damage.hint or CHECK
        raise


def create(layout: Layout, *, clock: Clock, policy: Policy, explicit: bool, user: str = "") -> None:
    """Make a store; harmless when there is one, also while others do the same. ``user`` is who makes it.

    Raises:
        Refused: the directory holds something else, or belongs to another user.
        StorageFailed: it cannot be written there.
    """
    root = layout.root
    if _exists(layout.format):
        return
    _check_place(layout)
    make_directory(root.parent)
    make_private_directory(root, None)
    owner = check_owner(root, explicit=explicit)
    for directory in layout.directories[1:]:
        make_private_directory(directory, owner)
    lock = layout.lock("commit")
    make_file(lock, owner)
    with locked(lock, wait=policy.wait, holder="a command that is making the store"):
        if not _exists(layout.format):
            _fill(layout, owner, clock, user)
    sync_directory(root.parent)


def _fill(layout: Layout, owner: Owner | None, clock: Clock, user: str) -> None:
    """Write the files of a new store. Its format file comes last: with it, the store is there."""
    from casnap.codec.hashing import NO_PREVIOUS
    from casnap.codec.lines import encode_line
    from casnap.model.operation import StoreCreated
    from casnap.store.readme import readme

    make_file(layout.reserve, owner, reserve_size(media.free_space(layout.root)[1]))
    try:
        store_format = read_format(layout)
    except NoStore:
        store_format = new_format()
        oplog = Oplog(layout, owner)
        for _ in oplog.lines(START):
            raise Damage(f"cannot create store {layout.root}: its operation log begins with another store's") from None
        oplog.repair()
        line = StoreCreated(seq=1, time=clock.now(), prev=NO_PREVIOUS, format=store_format.as_dict())
        oplog.append(encode_line(line)[0])
    uid, name = (os.geteuid(), user) if owner is None else (owner[0], "")  # another's name is not known here
    _write(layout.readme, readme(store_format.id, uid=uid, user=name, made=clock.now()), owner)
    _write(layout.format, encode_format(store_format), owner)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise failed("look at", path, error) from error


def _write(path: Path, data: bytes, owner: Owner | None) -> None:
    write_whole(path, data)
    give(path, owner)


def _check_place(layout: Layout) -> None:
    """Refuse to make a store among other files; what a creation that was killed has left is no obstacle."""
    if _exists(layout.segment(START.segment)):
        return
    mine = (*layout.directories[1:], layout.reserve, layout.readme, layout.format)
    known = {path.stem for path in mine} | {"lost+found"}
    try:
        names = os.listdir(layout.root)
    except FileNotFoundError:
        return
    except OSError as error:
        raise failed("create store", layout.root, error) from error
    if any(name.partition(".")[0] not in known for name in names):
        raise Refused(
            f"cannot create store {layout.root}: the directory holds other files",
            hint="give a directory that is empty or does not exist yet",
        )


def _no_store(root: Path) -> NoStore:
    return NoStore(
        f"cannot open store {root}: there is none",
        hint="make a first checkpoint there with casnap checkpoint, or give another store with --store",
        details={"store": os.fsdecode(root)},
    )
