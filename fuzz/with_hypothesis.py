"""Replay and mutation by Hypothesis: needs nothing that the tests do not need."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, settings

from fuzz.findings import Finding, Run, replay
from fuzz.inputs import known
from fuzz.law import Target, judge
from fuzz.mutation import inputs

BATCH = 500
"""Inputs between two looks at the clock."""


class _Broken(Exception):
    """Tells Hypothesis that an input breaks the law."""


def run(target: Target[Any], seconds: float) -> Run:
    """Feed a target what is known, then damaged inputs until the time is over or one breaks the law."""
    begun = known(target)
    outcome = replay(target, begun)
    executions, end = outcome.executions, time.monotonic() + seconds
    while outcome.finding is None and time.monotonic() < end:
        outcome = search(target, begun, BATCH)
        executions += outcome.executions
    return Run(executions, outcome.finding)


def search(target: Target[Any], known: Sequence[bytes], examples: int, *, derandomize: bool = False) -> Run:
    """Judge ``examples`` damaged inputs; one that breaks the law is made as small as it gets, and ends it.

    ``derandomize``: the same inputs each time.
    """
    executions = 0
    finding: Finding | None = None

    @settings(
        max_examples=examples,
        derandomize=derandomize,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
    )
    @given(inputs(target, known))
    def try_one(data: bytes) -> None:
        nonlocal executions, finding
        executions += 1
        if fault := judge(target, data):
            finding = Finding(fault, data)
            raise _Broken

    try:
        try_one()
    except _Broken:
        return Run(executions, finding)
    return Run(executions)
