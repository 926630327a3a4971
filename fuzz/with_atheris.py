"""Coverage-guided fuzzing by Atheris, in a process for each target: libFuzzer ends the process that it runs in."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fuzz.findings import Finding, Run, replay
from fuzz.inputs import known
from fuzz.law import Target, judge
from fuzz.mutation import EDGES

SECONDS_FOR_ONE = 20
"""An input that takes longer is a finding too."""


def is_available() -> bool:
    """Whether Atheris is installed (the extra ``fuzz``)."""
    return importlib.util.find_spec("atheris") is not None


def run(target: Target[Any], seconds: float) -> Run:
    """Replay what is known, then let libFuzzer look for inputs that reach more code, or break the law."""
    begun = known(target)
    outcome = replay(target, begun)
    if outcome.finding:
        return outcome
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        scratch = Path(name)
        return _fuzz(target, begun, seconds, scratch)


def _fuzz(target: Target[Any], begun: Iterable[bytes], seconds: float, scratch: Path) -> Run:
    reached, found, tokens = scratch / "reached", scratch / "found", scratch / "tokens"
    reached.mkdir()
    found.mkdir()
    for number, data in enumerate(begun):
        (reached / str(number)).write_bytes(data)
    tokens.write_text("".join(map(_as_token, (*EDGES, *target.tokens))))
    options = {
        "max_total_time": max(1, round(seconds)),
        "max_len": target.longest,
        "timeout": SECONDS_FOR_ONE,
        "dict": tokens,
        "artifact_prefix": f"{found}/",
        "print_final_stats": 1,
    }
    flags = [f"-{option}={value}" for option, value in options.items()]
    command = [sys.executable, "-m", "fuzz.instrumented", target.name, *flags, str(reached)]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    report = ended.stderr.decode("utf-8", "replace")
    executions = int(next(iter(re.findall(r"^stat::number_of_executed_units: *(\d+)", report, re.MULTILINE)), 0))
    for path in found.iterdir():
        data = path.read_bytes()
        return Run(executions, Finding(judge(target, data) or f"the process ended ({path.name.split('-')[0]})", data))
    if ended.returncode or not executions:
        raise RuntimeError(f"Atheris ended with status {ended.returncode}:\n{report}")
    return Run(executions)


def _as_token(token: bytes) -> str:
    """A line of libFuzzer's dictionary."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in token) + '"\n'
