"""The fuzz targets, for a moment each: that they run, that their seeds are valid, that the law can be broken."""

from __future__ import annotations

import dataclasses
import random

import pytest

from fuzz.mutation import LONGEST, mutate
from fuzz.run import corpus, judge
from fuzz.targets import TARGETS, Target

target = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)


@target
def test_every_seed_is_accepted_and_encoded_as_it_was(target: Target) -> None:
    for seed in target.seeds:
        assert target.parse(seed) == seed
        assert target.seal(seed) == seed


@target
def test_the_corpus_and_some_mutations_keep_the_law(target: Target) -> None:
    rng = random.Random(7)
    known = [*target.seeds, *corpus(target)]
    tried = [*known, *(target.seal(mutate(rng, rng.choice(known), known)) for _ in range(300))]
    assert [(data, fault) for data in tried if (fault := judge(target, data))] == []


def test_a_crash_and_a_second_encoding_are_found() -> None:
    def crash(data: bytes) -> bytes:
        raise IndexError("of a bug")

    broken = dataclasses.replace(TARGETS[0], parse=crash)
    lenient = dataclasses.replace(TARGETS[0], parse=lambda data: data.lstrip(b"\0"))
    assert judge(broken, b"x") == "BROKEN: IndexError: of a bug"
    assert judge(lenient, b"\0x") == "BROKEN: it was accepted, but is encoded differently"


def test_mutations_stay_short() -> None:
    rng = random.Random(3)
    data = b"x" * LONGEST
    for _ in range(200):
        data = mutate(rng, data, [data])
        assert len(data) <= LONGEST
