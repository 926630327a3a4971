"""``casnap cleanup`` and its other names."""

from __future__ import annotations

import click

from casnap.cli.as_json import checkpoint_record
from casnap.cli.options import agreed, flag, once, verb
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.text import quantity, tag
from casnap.engine.cleanup import cleanup, rule_of
from casnap.model.age import parse_age


@verb("cleanup")
@once("--keep", metavar="N", type=click.IntRange(min=0), help="Those beyond the newest N go (20).")
@once("--older-than", "age", metavar="AGE", help="Those older than this go: a number and s, m, h, d or w.")
@flag("--dry-run", help="Only tell what would go.")
@agreed
def command(session: Session, keep: int | None, age: str | None, dry_run: bool, yes: bool) -> int:
    """Delete old checkpoints: those beyond the newest N, those older than AGE, or with both what is both.

    Head and pinned ones stay, beside the N. Safety checkpoints go when they are older than the oldest that
    stays. `casnap undelete` brings one back. Other names: clean, prune.
    """
    older = None if age is None else parse_age("--older-than", age)
    workspace = session.workspace()
    context = session.context()
    rule = rule_of(context, workspace, keep, older)
    words = rule.words or "no rule is set"
    if not dry_run and not yes and session.may_ask:
        ahead = cleanup(context, workspace, rule, dry_run=True)
        question = f"Delete {quantity(len(ahead.deleted), 'checkpoint')} of {printable(workspace.path)} ({words})?"
        session.confirm(question, yes=not ahead.deleted)
    report = cleanup(context, workspace, rule, dry_run=dry_run)
    if session.as_json:
        session.document(
            "cleanup",
            workspace,
            deleted=[checkpoint_record(checkpoint) for checkpoint in report.deleted],
            kept=report.kept,
            dry_run=report.dry_run,
            rule=report.rule,
        )
    else:
        for checkpoint in report.deleted:
            session.output.data(f"{'would delete' if dry_run else 'deleted'} {tag(checkpoint)}")
        done = "would go" if dry_run else "deleted"
        session.output.talk(f"{quantity(len(report.deleted), 'checkpoint')} {done} ({words}), {report.kept} kept")
    return 0
