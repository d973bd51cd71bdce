"""JAAS login files: which user a broker is towards ZooKeeper.

The format is that of Java's `com.sun.security.auth.login.ConfigFile`:

    Client {
        org.apache.zookeeper.server.auth.DigestLoginModule required
        username="kafka"
        password="secret";
    };

Comments are `//` and `/* */`; either kind of quotes does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

FLAGS: Final = ("required", "requisite", "sufficient", "optional")
DIGEST_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<word>[^\s"'{}=;/]+)
      | (?P<mark>[{}=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(.)")
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class JaasError(ValueError):
    """The text is no login file; the message is one line that says where it stops being one."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One entry of a section: the Java class, and its options."""

    name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)


Sections = Mapping[str, tuple[LoginModule, ...]]


def parse(text: str) -> Sections:
    """The login modules of each section. Raises JaasError."""
    tokens = _Tokens(text)
    sections: dict[str, tuple[LoginModule, ...]] = {}
    while not tokens.done:
        name = tokens.text("the name of a section")
        tokens.mark("{")
        modules = []
        while not tokens.skip("}"):
            modules.append(_module(tokens))
        tokens.mark(";")
        if name in sections:
            raise JaasError(f"the section {name} is there twice")
        sections[name] = tuple(modules)
    return sections


def _module(tokens: _Tokens) -> LoginModule:
    name, flag = tokens.text("a login module"), tokens.text("a flag")
    if flag.lower() not in FLAGS:
        raise tokens.error(f"the flag has to be one of {', '.join(FLAGS)}")
    options = {}
    while not tokens.skip(";"):
        key = tokens.text("the name of an option")
        tokens.mark("=")
        options[key] = tokens.text(f"the value of {key}")
    return LoginModule(name, flag.lower(), options)


class _Tokens:
    """The words, texts and marks of a file, one after the other."""

    def __init__(self, text: str) -> None:
        self._next = 0
        self._found: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text):
            token = _TOKEN.match(text, at)
            line = text.count("\n", 0, at) + 1
            if token is None:
                raise JaasError(f"line {line}: {text[at]} is not expected")
            kind = token.lastgroup or ""
            if kind != "blank":
                self._found.append((kind, token[kind], line))
            at = token.end()

    @property
    def done(self) -> bool:
        """Whether all have been taken."""
        return self._next == len(self._found)

    def text(self, what: str) -> str:
        """Take a word, or a text in quotes."""
        kind, value, _ = self._peek(what)
        if kind == "mark":
            raise self.error(f"{what} is missing before {value}")
        self._next += 1
        if "${" in value:
            raise self.error(f"{what}: properties (${{…}}) are not replaced")
        if kind == "word":
            return value
        return _ESCAPE.sub(lambda found: _CONTROLS.get(found[1], found[1]), value[1:-1])

    def mark(self, mark: str) -> None:
        """Take that mark."""
        if not self.skip(mark):
            raise self.error(f"{mark} is missing")

    def skip(self, mark: str) -> bool:
        """Take that mark if it is next."""
        kind, value, _ = self._peek(mark)
        found = kind == "mark" and value == mark
        self._next += found
        return found

    def error(self, reason: str) -> JaasError:
        """What is wrong, with the line it is in; values are left out, for they may be secret."""
        line = self._found[min(self._next, len(self._found) - 1)][2]
        return JaasError(f"line {line}: {reason}")

    def _peek(self, what: str) -> tuple[str, str, int]:
        if self.done:
            raise JaasError(f"{what} is missing at the end")
        return self._found[self._next]
