"""``casnap cleanup`` and its other names."""

from __future__ import annotations

import click

from casnap.cli.as_json import checkpoint_record
from casnap.cli.options import agreed, flag, once, verb
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.text import quantity, tag
from casnap.engine.cleanup import Rule, cleanup, rule_of
from casnap.model.age import age_text, parse_age
from casnap.model.report import CleanupReport, WorkspaceInfo

NO_RULE = "no rule is set"


@verb("cleanup")
@once("--keep", metavar="N", type=click.IntRange(min=0), help="Those beyond the newest N go (20).")
@once("--older-than", "age", metavar="AGE", help="Those older than this go: a number and s, m, h, d or w.")
@flag("--dry-run", help="Only tell what would go.")
@agreed
def command(session: Session, keep: int | None, age: str | None, dry_run: bool, yes: bool) -> int:
    """Delete old checkpoints: those beyond the newest N, those older than AGE, or with both what is both.

    Head and pinned ones stay also where they are older. Safety checkpoints go when they are older than the oldest that
    stays. Names do not protect, pins do. The last checkpoint that holds anything always stays. `casnap undelete`
    brings one back. Other names: clean, prune.
    """
    older = None if age is None else parse_age("--older-than", age)
    workspace = session.workspace()
    context = session.context()
    rule = rule_of(context, workspace, keep, older)
    session.output.talk(_what_stays(rule))
    if not dry_run and not yes and session.may_ask:
        _ask(session, workspace, rule)
    report = cleanup(context, workspace, rule, dry_run=dry_run)
    if session.as_json:
        session.document(
            "cleanup",
            workspace,
            deleted=[checkpoint_record(checkpoint) for checkpoint in report.deleted],
            kept=report.kept,
            dry_run=report.dry_run,
            rule=report.rule,
            notes=list(report.notes),
        )
    else:
        _show(session, report)
    return 0


def _ask(session: Session, workspace: WorkspaceInfo, rule: Rule) -> None:
    """Name what would go and why before the question is put."""
    ahead = cleanup(session.context(), workspace, rule, dry_run=True)
    for note in ahead.notes:
        session.output.talk(f"note: {printable(note)}")
    question = f"Delete {quantity(len(ahead.deleted), 'checkpoint')} of {printable(workspace.path)} ({_words(rule)})?"
    session.confirm(question, yes=not ahead.deleted)


def _show(session: Session, report: CleanupReport) -> None:
    for checkpoint in report.deleted:
        session.output.data(f"{'would delete' if report.dry_run else 'deleted'} {tag(checkpoint)}")
    for note in report.notes:
        session.output.talk(f"note: {printable(note)}")
    count, words = quantity(len(report.deleted), "checkpoint"), report.rule or NO_RULE
    session.output.talk(f"{count} {'would go' if report.dry_run else 'deleted'} ({words}), {report.kept} kept")


def _words(rule: Rule) -> str:
    return rule.words or NO_RULE


def _what_stays(rule: Rule) -> str:
    """The rule as a sentence, with what it does not touch."""
    if not rule.words:
        return f"{NO_RULE}: nothing goes"
    kinds = ["head", "pinned ones", *(["named ones"] if rule.keep_named else []), "what undo leads to"]
    newest = max(rule.keep or 0, 0 if rule.older_than_ns is None else 1)
    kinds += [f"the newest {newest}" if newest > 1 else "the newest"] if newest else []
    kinds += [] if rule.older_than_ns is None else [f"those not older than {age_text(rule.older_than_ns)}"]
    names = "" if rule.keep_named else "; names do not protect"
    return f"{rule.words}: what stays is {', '.join(kinds)}{names}"
