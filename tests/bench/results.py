"""What was measured, and the file that it is kept in."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = "casnap.bench-results/1"


@dataclass
class Result:
    """One row of one program: seconds of each run, on the clock and of processors, and bytes by what they are.

    ``size`` is the number of files of the tree, ``load`` the load of the machine before the row, ``note`` what was odd,
    and ``error`` what went wrong, in which case nothing else counts.
    """

    row: str
    size: int
    peer: str
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    bytes: dict[str, int] = field(default_factory=dict)
    place: str = ""
    date: str = ""
    load: float = 0.0
    note: str = ""
    error: str = ""

    @property
    def key(self) -> tuple[str, int, str]:
        """What another result of the same must have in common with it to replace it."""
        return self.row, self.size, self.peer

    def figure(self, what: str) -> float | None:
        """The median of ``time`` or ``cpu`` in seconds, or the bytes of ``what``; None where it was not measured."""
        if self.error:
            return None
        if what in ("time", "cpu"):
            runs = self.seconds if what == "time" else self.cpu
            return statistics.median(runs) if runs else None
        return self.bytes.get(what)


class Results:
    """Results by row, size and program, with the machine and the versions that they are of.

    ``trees`` has the bytes of the tree of each size.
    """

    def __init__(self, machine: dict[str, str], versions: dict[str, str]) -> None:
        self.machine, self.versions = machine, versions
        self.trees: dict[str, int] = {}
        self._all: dict[tuple[str, int, str], Result] = {}

    def put(self, result: Result) -> None:
        """Keep a result in the place of an older one of the same."""
        self._all[result.key] = result

    def get(self, row: str, size: int, peer: str) -> Result | None:
        """The result of one program, None where there is none."""
        return self._all.get((row, size, peer))

    def all(self) -> list[Result]:
        """All results."""
        return list(self._all.values())

    def of(self, row: str, size: int) -> list[Result]:
        """The results of all programs in one row."""
        return [one for one in self._all.values() if (one.row, one.size) == (row, size)]

    def sizes(self) -> list[int]:
        """The sizes that there are results of, the smallest first."""
        return sorted({one.size for one in self._all.values()})

    def with_earlier(self, path: Path) -> Results:
        """These, and the rows that a file has of the same machine; of one that was measured anew nothing old is kept.

        So that the figures of a row are always of one run.
        """
        if not path.exists() or (known := load(path)).machine != self.machine:
            return self
        both = Results(self.machine, known.versions | self.versions)
        both.trees = known.trees | self.trees
        anew = {(one.row, one.size) for one in self.all()}
        for result in (*self.all(), *(one for one in known.all() if (one.row, one.size) not in anew)):
            both.put(result)
        return both

    def save(self, path: Path) -> None:
        """Write all of it."""
        path.write_text(json.dumps(self.document(), indent=1) + "\n", "utf-8")

    def document(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {
            "schema": SCHEMA,
            "machine": self.machine,
            "versions": self.versions,
            "trees": self.trees,
            "results": [_rounded(asdict(one)) for one in sorted(self._all.values(), key=lambda one: one.key)],
        }


def load(path: Path) -> Results:
    """The results that a file has."""
    known = json.loads(path.read_text("utf-8"))
    results = Results(known["machine"], known["versions"])
    results.trees = known["trees"]
    for record in known["results"]:
        results.put(Result(**record))
    return results


def _rounded(record: dict[str, Any]) -> dict[str, Any]:
    for name in ("seconds", "cpu"):
        record[name] = [round(value, 5) for value in record[name]]
    return record
