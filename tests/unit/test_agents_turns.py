"""When a checkpoint is due in the course of a turn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from casnap.agents.event import Event, Moment
from casnap.agents.notes import Turn
from casnap.agents.turns import after

EVENTS = st.builds(
    Event,
    agent=st.just("a"),
    moment=st.sampled_from(Moment),
    turn=st.sampled_from(["", "t1", "t2"]),
    tool=st.just("tool"),
    changes=st.booleans(),
)


@given(st.lists(EVENTS, max_size=20))
def test_no_tool_that_may_change_files_runs_in_a_turn_that_was_not_looked_at(events: list[Event]) -> None:
    known = Turn()
    looked_since: dict[str, bool] = {}
    for event in events:
        known, due = after(event, known)
        if event.moment is Moment.BEFORE_TOOL and event.changes:
            assert due or looked_since.get(known.id)
            looked_since[known.id] = True
        elif event.moment in (Moment.PROMPT, Moment.TURN_END) and due:
            looked_since = {}  # what was looked at before belongs to the turn before


@given(st.lists(EVENTS, max_size=20))
def test_the_end_of_a_turn_and_of_a_session_are_always_looked_at_and_nothing_else_is_for_nothing(
    events: list[Event],
) -> None:
    known = Turn()
    for event in events:
        known, due = after(event, known)
        if event.moment in (Moment.TURN_END, Moment.SESSION_END):
            assert due
        if event.moment is Moment.OTHER or (event.moment is Moment.BEFORE_TOOL and not event.changes):
            assert not due


def test_turns_without_a_name_are_numbered() -> None:
    known, numbers = Turn(), []
    for _ in range(3):
        for moment in (Moment.PROMPT, Moment.BEFORE_TOOL, Moment.TURN_END):
            known, _due = after(Event("a", moment), known)
            numbers.append(known.id)
    assert numbers == ["1"] * 3 + ["2"] * 3 + ["3"] * 3


def test_an_agent_that_tells_of_tools_alone_is_looked_at_once_in_each_run() -> None:
    known, looks = Turn(), []
    for run in ("r1", "r1", "r1", "r2", "r2"):
        known, due = after(Event("a", Moment.BEFORE_TOOL, turn=run, tool="exec"), known)
        looks.append(due)
    assert looks == [True, False, False, True, False]
