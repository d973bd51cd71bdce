"""Words that pages for users, messages and product code do not have, with what to write instead.

Readers search for the words of the field, and those of another first language know them. Pages for
users name no tests either. Messages are the texts in code that are no docstrings: log lines,
errors, help of metrics, settings and commands. Product code has the words of messages in its
docstrings, its comments and the names that it defines. Names of tests have them neither.
`tools.tidy` runs this.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

INSTEAD: Final = {
    "anew": "again",
    "ceases": "stops",
    "reckon": "compute",
    "reckons": "computes",
    "shall": "must, or the present tense",
    "somebody": "the user or the program by its name",
    "thereby": "so",
    "whoever": "the client, broker or user",
    "whom": "which broker, which client",
}
IN_PAGES: Final = INSTEAD | {
    "everybody": "all clients, without authentication",
    "hear": "be notified, receive",
    "heard": "notified, received",
    "hears": "is notified, receives",
    "nobody": "no client, no broker, no replica",
    "tells": "reports, sends, notifies",
    "told": "reported, sent, notified",
}
"""Words of pages for users."""
IN_MESSAGES: Final = INSTEAD | {
    "hear": "be notified, receive",
    "heard": "notified, received",
    "hears": "is notified, receives",
    "nobody": "no client, no broker, no replica",
    "reign": "the time as the controller",
    "reigns": "is the active controller",
    "tell": "report, send, notify",
    "tells": "reports, sends, notifies",
    "told": "reported, sent, notified",
}
OLD_NAMES: Final = {
    "agenda": "work queue",
    "departures": "half_close",
    "patience": "timeout",
    "reign": "active_controller",
    "reigning": "active_controller",
    "reigns": "is_active",
    "stories": "scenarios",
    "story": "scenario, transcript",
    "upkeep": "background_tasks",
}
"""Parts of names that were replaced by Kafka's."""
IN_PRODUCT: Final = {
    "anew": "again, or the present tense",
    "anybody": "any client, any user",
    "course": "steps, progress, state",
    "everybody": "all clients, all threads, all members",
    "hear": "notify, receive",
    "heard": "notified, received",
    "hears": "is notified, receives",
    "nobody": "no client, no broker, no replica",
    "patience": "timeout, backoff",
    "somebody": "the client, the user, the other broker",
    "speaker": "member, principal, client",
    "tell": "send, report, notify, distinguish",
    "telling": "sending, reporting",
    "tells": "sends, reports, notifies, says",
    "told": "sent, reported; of a name: what it holds",
    "whoever": "the client, broker or caller",
    "whom": "which broker, which client, whose",
}
"""Words that docstrings, comments and names of product code once had, and never get again."""
IN_TESTS: Final = {
    "anew": "again",
    "anybody": "any client, any user",
    "beside": "with, in another thread, next to",
    "everybody": "all clients, all members",
    "hear": "be notified, receive",
    "heard": "notified, received",
    "hears": "is notified, receives",
    "nobody": "no client, no broker, no replica",
    "shall": "the present tense",
    "somebody": "the client, another broker",
    "stand": "be, be listed",
    "stands": "is, is listed",
    "tell": "send, report, notify",
    "tells": "sends, reports, notifies",
    "told": "sent, reported, notified",
    "who": "the broker, client or member",
    "whoever": "the broker, client or member",
    "whom": "the broker, client or member",
}
"""Parts of names of tests. A name has what is tested, the condition, and what is expected."""
WITHOUT_SUBJECT: Final = tuple(
    f"test_{word}_" for word in ("what", "where", "whether", "why", "those")
)
"""Beginnings of names of tests that do not name what is tested."""
PRODUCT: Final = ("broker-image/src/", "operator/src/", "libs/", "pipelines/src/")
MESSAGES_IN: Final = ("broker-image/src/", "operator/src/", "libs/", "benchmarks/")
FOR_DEVELOPERS: Final = (
    "docs/adr/",
    "docs/contributing/",
    "docs/reference/",
    "docs/ARCHITECTURE.md",
)
NAMES_TESTS: Final = ("docs/security.md", "README.md", "SECURITY.md")
"""The table of attacks names the test of each row."""

_IN_PAGE: Final = re.compile(rf"\b({'|'.join(IN_PAGES)})\b", re.IGNORECASE)
_IN_MESSAGE: Final = re.compile(rf"\b({'|'.join(IN_MESSAGES)})\b", re.IGNORECASE)
_IN_PRODUCT: Final = re.compile(rf"\b({'|'.join(IN_PRODUCT)})\b(?! apart)", re.IGNORECASE)
_CODE: Final = re.compile(r"`[^`]*`|\(#[^)]*\)")
_TEST: Final = re.compile(r"\btests/[a-z_]+|\btest_[a-z_]+\.py")


def findings(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """Line and message of each word that a page for users should not have."""
    name = str(path)
    if not _is_for_users(name):
        return
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        fenced ^= line.lstrip().startswith("```")
        if fenced:
            continue
        for found in _IN_PAGE.finditer(_CODE.sub("", line)):
            yield number, f"{found[0]!r}: write {IN_PAGES[found[0].lower()]}"
        if name not in NAMES_TESTS and (test := _TEST.search(line)):
            yield number, f"{test[0]}: a page for users names no tests"


def messages(path: PurePosixPath, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and message of each word that a text in code should not have."""
    if not str(path).startswith(MESSAGES_IN):
        return
    nodes = list(ast.walk(tree))
    documents = {
        id(each.value) for each in nodes if isinstance(each, ast.Expr)
    }  # Docstrings, and what stands below a constant.
    for node in nodes:
        if isinstance(node, ast.Constant) and id(node) not in documents:
            text = node.value if isinstance(node.value, str) and " " in node.value else ""
            for found in _IN_MESSAGE.finditer(text):
                yield node.lineno, f"{found[0]!r}: write {IN_MESSAGES[found[0].lower()]}"


def prose(path: PurePosixPath, text: str) -> Iterator[tuple[int, str]]:
    """Line and message of each word that docstrings and comments of product code do not have."""
    if not str(path).startswith(PRODUCT):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.COMMENT, tokenize.STRING):
            continue
        if token.type == tokenize.STRING and not token.string.endswith('"""'):
            continue
        for number, line in enumerate(token.string.splitlines(), start=token.start[0]):
            for found in _IN_PRODUCT.finditer(_CODE.sub("", line)):
                yield number, f"{found[0]!r}: write {IN_PRODUCT[found[0].lower()]}"


def names(path: PurePosixPath, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and message of each definition whose name has a part that was replaced."""
    old = OLD_NAMES | IN_PRODUCT if str(path).startswith(PRODUCT) else OLD_NAMES
    for line, name in _defined(tree):
        if name.startswith(WITHOUT_SUBJECT):
            yield line, f"{name}: begin with what is tested"
        parts = OLD_NAMES | IN_TESTS if name.startswith("test_") else old
        for part in name.lower().split("_"):
            if part in parts:
                yield line, f"{name}: say {parts[part]}"
    if path.stem in old:
        yield 1, f"{path.name}: say {old[path.stem]}"


def _defined(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each definition."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name):
                yield node.lineno, re.sub("(?<=[a-z])(?=[A-Z])", "_", name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case _:
                pass


def _is_for_users(name: str) -> bool:
    in_docs = name.startswith("docs/") and not name.startswith(FOR_DEVELOPERS)
    return in_docs or name in ("README.md", "SECURITY.md")
