"""``make fuzz``: hold every target to its law, by Atheris where it is installed, else by Hypothesis.

An input that breaks the law is kept in fuzz/corpus/TARGET/, and each later run begins with it.
"""

from __future__ import annotations

import argparse
import sys

from fuzz import memory, with_atheris, with_hypothesis
from fuzz.inputs import keep
from fuzz.targets import TARGETS

ENGINES = {"atheris": with_atheris.run, "hypothesis": with_hypothesis.run}


def main() -> None:
    """Run the targets one after the other; exit with 1 when a law was broken."""
    names = [target.name for target in TARGETS]
    best = "atheris" if with_atheris.is_available() else "hypothesis"
    parser = argparse.ArgumentParser(prog="fuzz", description="Feed damaged bytes to each parser.")
    parser.add_argument("--seconds", type=float, default=30, help="how long each target runs (default: 30)")
    parser.add_argument("--engine", choices=sorted(ENGINES), default=best, help=f"what makes inputs (here: {best})")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"all, or some of: {', '.join(names)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.targets) - set(names):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")

    print(f"inputs by {arguments.engine}, {arguments.seconds:g} seconds for each target")
    broken = 0
    for target in TARGETS:
        if not arguments.targets or target.name in arguments.targets:
            memory.bound()
            executions, finding = ENGINES[arguments.engine](target, arguments.seconds)
            outcome = "ok"
            if finding:
                broken += 1
                outcome = f"BROKEN: {finding.fault}; kept as {keep(target, finding.data)}"
            print(f"{target.name:<12} {executions:>12,} executions  {outcome}", flush=True)
    sys.exit(min(broken, 1))


if __name__ == "__main__":
    main()
