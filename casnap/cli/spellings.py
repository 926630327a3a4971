"""Command lines in the spellings that the documentation has, read before click is imported.

Whatever is not understood in full is left to click: mistakes, help, and what only it can take apart. What is understood
means what it means to click (docs/design/decisions/0011-known-spellings-before-click.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from casnap.cli.grammar import ALIASES, EVERYWHERE, Grammar, Option, grammar_of
from casnap.cli.session import Options

MOST_DIGITS = 9
"""Digits of a number; what is longer is somebody else's to judge."""

_EVERYWHERE = {name: option for option in EVERYWHERE for name in option.names}


class Request:
    """The verb that was asked for, the options of every verb, and the values of its own by their keys."""

    def __init__(self, verb: str, options: Options, values: dict[str, Any]) -> None:
        self.verb = verb
        self.options = options
        self.values = values


class _NotUnderstood(Exception):
    """This is for click to read."""


def read(arguments: list[str]) -> Request | None:
    """What a command line asks for; None where that is for click to find out."""
    try:
        return _read(arguments)
    except _NotUnderstood:
        return None


def verb_in(words: list[str]) -> str:
    """The verb in a command line that may be wrong otherwise; empty where there is none."""
    ahead = iter(words)
    for word in ahead:
        if not word.startswith("-"):
            return ALIASES.get(word, word)
        option = _EVERYWHERE.get(word)
        if option is not None and option.takes != "nothing":
            next(ahead, None)
    return ""


def _read(arguments: list[str]) -> Request:
    if "--" in arguments:  # paths follow it, wherever it stands, and these verbs take none
        raise _NotUnderstood
    verb, grammar, known, argument = "", None, _EVERYWHERE, ""
    given: dict[str, Any] = {}
    words = iter(arguments)
    for word in words:
        if word.startswith("-") and word != "-":
            name, equals, value = word.partition("=")
            option = known.get(name)
            if option is None or (equals and not name.startswith("--")):  # to click, -n=5 is -n with the value =5
                raise _NotUnderstood
            given[option.key] = _combined(option, given, _value(option, value if equals else None, words))
        elif not verb:
            verb = ALIASES.get(word, word)
            grammar = grammar_of(word)
            if grammar is None:
                raise _NotUnderstood
            argument = grammar.argument
            known = _EVERYWHERE | {name: option for option in grammar.options for name in option.names}
        elif argument and argument not in given:
            given[argument] = word
        else:
            raise _NotUnderstood
    if grammar is None:
        raise _NotUnderstood
    return _request(verb, grammar, given)


def _value(option: Option, attached: str | None, words: Iterator[str]) -> Any:
    """The value of an option, which is ``attached`` to it or the next of the words."""
    if option.takes == "nothing":
        if attached is not None:
            raise _NotUnderstood
        return True
    text = next(words, None) if attached is None else attached
    if text is None:
        raise _NotUnderstood
    match option.takes:
        case "count" if _is_number(text):
            return int(text)
        case "seconds" if _is_number(text.replace(".", "", 1)):
            return float(text)
        case "choice" if text in option.choices:
            return text
        case "text":
            return text
    raise _NotUnderstood


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS


def _combined(option: Option, given: dict[str, Any], value: Any) -> Any:
    """One value of what was given before and what is given now."""
    before = given.get(option.key)
    match option.repeated:
        case "all":
            return (value,) if before is None else (*before, value)
        case "same" if before is not None and before != value:
            raise _NotUnderstood
    return value


def _request(verb: str, grammar: Grammar, given: dict[str, Any]) -> Request:
    options = Options()
    for option in EVERYWHERE:
        if option.key in given:
            options.keep(option.key, given.pop(option.key))
    values = {option.key: False if option.takes == "nothing" else None for option in grammar.options}
    if grammar.argument:
        values[grammar.argument] = None
    return Request(verb, options, values | given)
