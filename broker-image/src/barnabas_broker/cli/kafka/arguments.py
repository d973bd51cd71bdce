"""Kafka's option syntax brought into the form that click reads; no I/O.

Apache's tools parse with jopt-simple and argparse4j. Beside `--name value` and `--name=value` they
take `-name` for a long option, and some options take every value up to the next one. Commands that
were pasted from a document often have a dash of typography where `--` was typed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

# Hyphen, non-breaking hyphen, figure dash, en dash, em dash, horizontal bar, minus sign.
TYPOGRAPHIC_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"


class Takes(Enum):
    """How many values an option takes."""

    NOTHING = 0
    ONE = 1
    MAYBE_ONE = 2
    SEVERAL = 3


class Normalised(NamedTuple):
    """The arguments for click, and those whose dashes had to be guessed."""

    arguments: list[str]
    mended: list[str]


def normalise(arguments: Sequence[str], options: Mapping[str, Takes]) -> Normalised:
    """Rewrite `arguments`; `options` are the tool's long names, with their `--`."""
    rewritten: list[str] = []
    mended: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return Normalised([*rewritten, word, *rest], mended)
        option = _option(word, options)
        name, equals, _ = option.partition("=")
        if name not in options:
            rewritten.append(option)
            continue
        if word[0] in TYPOGRAPHIC_DASHES:
            mended.append(word)
        takes = options[name]
        if takes is Takes.SEVERAL and not equals:
            while rest and _option(rest[0], options).partition("=")[0] not in options:
                rewritten += [name, rest.pop(0)]
            continue
        rewritten.append(option)
        if takes is Takes.ONE and not equals and rest:
            rewritten.append(rest.pop(0))
    return Normalised(rewritten, mended)


def _option(word: str, options: Mapping[str, Takes]) -> str:
    """The word with `--` in front where that makes it an option; otherwise as it is."""
    bare = word.lstrip("-" + TYPOGRAPHIC_DASHES)
    if bare == word or not bare:
        return word
    if word[0] in TYPOGRAPHIC_DASHES or f"--{bare.partition('=')[0]}" in options:
        return f"--{bare}"
    return word
