"""What a run of a target comes to, whichever engine makes the inputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from fuzz.law import Target, judge


class Finding(NamedTuple):
    """An input that breaks the law, and how."""

    fault: str
    data: bytes


class Run(NamedTuple):
    """How often a parser was called, and what that found."""

    executions: int
    finding: Finding | None = None


def replay(target: Target[Any], inputs: Iterable[bytes]) -> Run:
    """Judge these inputs, up to the first that breaks the law."""
    executions = 0
    for data in inputs:
        executions += 1
        if fault := judge(target, data):
            return Run(executions, Finding(fault, data))
    return Run(executions)
