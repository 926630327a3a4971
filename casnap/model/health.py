"""What ``casnap doctor`` finds."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Grade(Enum):
    """How much there is to do about it."""

    GOOD = "good"
    NOTE = "note"
    BAD = "bad"


class Diagnosis(Struct, frozen=True):
    """One thing that was looked at: ``said`` is how it is, ``remedy`` what to do, empty where nothing is to be done."""

    subject: str
    grade: Grade
    said: str
    remedy: str = ""


def good(subject: str, said: str) -> Diagnosis:
    """Nothing is to be done."""
    return Diagnosis(subject, Grade.GOOD, said)


def note(subject: str, said: str, remedy: str = "") -> Diagnosis:
    """It is worth knowing, and everything works."""
    return Diagnosis(subject, Grade.NOTE, said, remedy)


def bad(subject: str, said: str, remedy: str) -> Diagnosis:
    """Something does not work, or will not when it is needed."""
    return Diagnosis(subject, Grade.BAD, said, remedy)
