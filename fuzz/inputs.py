"""Inputs that are kept: fuzz/corpus has a directory for each target."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from fuzz.law import Target

CORPUS = Path(__file__).with_name("corpus")


def corpus(target: Target[Any]) -> list[bytes]:
    """Inputs that once broke the law, that are likely to, or that reach code which others do not."""
    return [path.read_bytes() for path in sorted((CORPUS / target.name).glob("*"))]


def known(target: Target[Any]) -> list[bytes]:
    """What a run begins with."""
    return [*target.seeds, *corpus(target)]


def keep(target: Target[Any], data: bytes, corpus: Path = CORPUS) -> Path:
    """Put an input into the corpus, under a name that follows from its bytes."""
    path = corpus / target.name / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
