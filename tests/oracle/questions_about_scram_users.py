"""Questions that both brokers are asked: the SCRAM credentials of users, with the words of errors.

Passwords, salts and keys are never shown; who has which mechanism with how many iterations is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from barnabas_kafka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas_kafka.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.oracle.sides import Side

UNKNOWN, SHA_256, SHA_512, LATER = 0, 1, 2, 3
ENOUGH: Final = 4096
#: Iterations around the bounds.
ITERATIONS: Final = (-1, 0, 4095, ENOUGH, 16_384, 16_385, 2**31 - 1)
NAMES: Final = ("", " ", "a b", "CN=x,O=y", "ü/<>", "<default>", "n" * 300)


def scram_users(side: Side) -> None:
    """Set, shown, replaced and removed."""
    _describe(side, "nobody yet", None)
    _describe(side, "nobody yet, no names", ())
    _describe(side, "nobody yet, by name", ("alice",))
    _alter(side, "one", set_=[("alice", SHA_256, ENOUGH)])
    _alter(side, "both kinds, two users", set_=[("bob", SHA_256, 5000), ("bob", SHA_512, 6000),
                                                ("carol", SHA_512, ENOUGH)])  # fmt: skip
    _settled(side, ("alice", "bob", "carol"))
    _describe(side, "everyone", None)
    _describe(side, "everyone, no names", ())
    for names in (("alice",), ("bob", "alice"), ("bob", "dave"), ("",), ("alice", "alice"),
                  ("dave", "dave", "bob")):  # fmt: skip
        _describe(side, f"named {names}", names)
    _alter(side, "replaced", set_=[("alice", SHA_256, 8192)])
    _alter(side, "one removed, the other set", gone=[("bob", SHA_256)],
           set_=[("bob", SHA_512, 7000)])  # fmt: skip
    _alter(side, "removed", gone=[("alice", SHA_256), ("carol", SHA_512)])
    _settled(side, ("bob",))
    _describe(side, "who is left", None)
    _alter(side, "the last one removed", gone=[("bob", SHA_512)])
    _settled(side, ())
    _describe(side, "nobody any more", None)


def scram_users_that_cannot_be(side: Side) -> None:
    """Names, mechanisms, iterations, what is not there, and what is named twice."""
    _alter(side, "nothing")
    for name in NAMES:
        _alter(side, f"{name!r} removed", gone=[(name, SHA_256)])
    for name in NAMES[:1]:
        _alter(side, f"{name!r} set", set_=[(name, SHA_256, ENOUGH)])
    for mechanism in (-1, UNKNOWN, LATER, 127):
        _alter(side, f"mechanism {mechanism}", set_=[("dave", mechanism, ENOUGH)])
        _alter(side, f"mechanism {mechanism} removed", gone=[("dave", mechanism)])
    for mechanism in (SHA_256, SHA_512):
        for iterations in (it for it in ITERATIONS if not ENOUGH <= it <= 16_384):
            _alter(side, f"{iterations} of {mechanism}", set_=[("dave", mechanism, iterations)])
    _alter(side, "salt and password empty", set_=[("", SHA_256, ENOUGH)], salt=b"", password=b"")
    twice = [("erin", SHA_256, ENOUGH), ("erin", SHA_256, ENOUGH)]
    _alter(side, "set twice", set_=twice)
    _alter(side, "set twice, another user", set_=[*twice, ("frank", UNKNOWN, ENOUGH)])
    _alter(side, "removed twice", gone=[("erin", SHA_256), ("erin", SHA_256)])
    _alter(side, "removed and set", gone=[("erin", SHA_256)], set_=twice[:1])
    _alter(side, "one of two cannot be", set_=[("erin", SHA_256, ENOUGH), ("erin", SHA_512, 1)])
    _alter(side, "several faults", set_=[("erin", LATER, 1)], gone=[("erin", SHA_512)])
    _alter(side, "several faults, the other order", set_=[("erin", SHA_512, 1)],
           gone=[("erin", LATER)])  # fmt: skip
    _describe(side, "nobody", None)


def _alter(
    side: Side,
    label: str,
    *,
    set_: Sequence[tuple[str, int, int]] = (),
    gone: Sequence[tuple[str, int]] = (),
    salt: bytes = b"salt",
    password: bytes = b"salted",
) -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=name, mechanism=it) for name, it in gone],
        upsertions=[
            ScramCredentialUpsertion(
                name=name, mechanism=it, iterations=count, salt=salt, salted_password=password
            )
            for name, it, count in set_
        ],
    )
    _keep(side, label, request)


def _describe(side: Side, label: str, names: Sequence[str] | None) -> None:
    _keep(side, label, _request(names))


def _request(names: Sequence[str] | None) -> DescribeUserScramCredentialsRequest:
    users = None if names is None else [UserName(name=name) for name in names]
    return DescribeUserScramCredentialsRequest(users=users)


def _settled(side: Side, names: Sequence[str]) -> None:
    """Apache's broker notices changes of users a little later."""
    side.wait(
        _request(None), 0,
        settled=lambda answer: {it.user for it in answer.results} == set(names),
    )  # fmt: skip


def _keep(side: Side, label: str, request: Any) -> None:
    """The answer, users in order, and the words of each error."""
    answer = side.wait(request, 0, settled=lambda _: True)
    if not isinstance(answer, str):
        answer.results.sort(key=lambda each: each.user)
        side.reported[f"{label}, words"] = [
            f"words: {each.error_message}" for each in answer.results if each.error_message
        ]
    side.keep(label, answer)


QUESTIONS: Final = (scram_users, scram_users_that_cannot_be)
