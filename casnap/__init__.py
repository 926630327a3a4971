"""casnap keeps checkpoints of working directories in one content-addressed store, and puts any of them back.

The public door. It opens lazily: ``import casnap`` costs nothing that is not asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing has it too, but takes half as long to import as Python takes to start
if TYPE_CHECKING:
    from typing import Any

    from casnap.errors import (
        Busy,
        CasnapError,
        Damage,
        NoStore,
        NotFound,
        Refused,
        StorageFailed,
        TooNew,
        Usage,
    )
    from casnap.manager import CheckpointManager
    from casnap.model.change import Aspect, Change, ChangeKind
    from casnap.model.checkpoint import Checkpoint, Counts, GitState, Origin
    from casnap.model.report import DeleteReport, Diff, Problem, RollbackReport, Status, VerifyReport, WorkspaceInfo

__version__ = "0.1.0"

_HOMES = {
    "casnap.errors": (
        "Busy",
        "CasnapError",
        "Damage",
        "NoStore",
        "NotFound",
        "Refused",
        "StorageFailed",
        "TooNew",
        "Usage",
    ),
    "casnap.manager": ("CheckpointManager",),
    "casnap.model.change": ("Aspect", "Change", "ChangeKind"),
    "casnap.model.checkpoint": ("Checkpoint", "Counts", "GitState", "Origin"),
    "casnap.model.report": (
        "DeleteReport",
        "Diff",
        "Problem",
        "RollbackReport",
        "Status",
        "VerifyReport",
        "WorkspaceInfo",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Aspect",
    "Busy",
    "CasnapError",
    "Change",
    "ChangeKind",
    "Checkpoint",
    "CheckpointManager",
    "Counts",
    "Damage",
    "DeleteReport",
    "Diff",
    "GitState",
    "NoStore",
    "NotFound",
    "Origin",
    "Problem",
    "Refused",
    "RollbackReport",
    "Status",
    "StorageFailed",
    "TooNew",
    "Usage",
    "VerifyReport",
    "WorkspaceInfo",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
