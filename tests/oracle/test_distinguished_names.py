"""Names of certificates as Java writes them, which ACLs know, and what rules make of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pytest

from barnabas_broker.security.ssl_principals import distinguished_name, parse_rules
from tests.oracle.apache import run_tool

pytestmark = pytest.mark.jvm

PROGRAM: Final = str(Path(__file__).parent / "java" / "Names.java")
RULES_PROGRAM: Final = str(Path(__file__).parent / "java" / "PrincipalRules.java")
NAMES: Final = 2000
#: CN, O, DC and UID; serialNumber, e-mail and a number of nobody's, which have no keyword.
NUMBERS: Final = tuple(
    map(
        bytes.fromhex,
        (
            "550403", "55040a", "0992268993f22c640119", "0992268993f22c640101", "550405",
            "2a864886f70d010901", "2b06010401",
        ),
    )
)  # fmt: skip
UTF8, PRINTABLE, T61, IA5, GENERAL, BMP, BITS = 12, 19, 20, 22, 27, 30, 3
CHARACTERS: Final = 'abcXYZ019 ,=+<>#;"\\\r\n\t\0/:ü€\U0001f511'


def element(tag: int, *content: bytes) -> bytes:
    """One element of DER."""
    whole = b"".join(content)
    size = len(whole)
    if size < 0x80:
        return bytes((tag, size)) + whole
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(length))) + length + whole


def name(chance: random.Random) -> bytes:
    """A name of some attributes, some of them in one group."""
    return element(0x30, *(group(chance) for _ in range(chance.randint(0, 4))))


def group(chance: random.Random) -> bytes:
    """One attribute, or two."""
    return element(0x31, *(attribute(chance) for _ in range(chance.choice((1, 1, 1, 2)))))


def attribute(chance: random.Random) -> bytes:
    """A number and a value."""
    text = "".join(chance.choices(CHARACTERS, k=chance.choice((0, 1, 2, 8, 200))))
    tag = chance.choice((UTF8, UTF8, UTF8, PRINTABLE, T61, IA5, GENERAL, BMP, BITS))
    value = text.encode()
    if tag == BITS:
        value = b"\0" + value
    elif tag not in (UTF8, BMP):
        value = text.encode("ascii", "ignore")
    if tag == BMP:
        value = text.encode("ascii", "ignore").decode().encode("utf-16-be")
    return element(0x30, element(6, chance.choice(NUMBERS)), element(tag, value))


def test_names_are_written_alike() -> None:
    """Whatever is in them; a name that Java refuses does not get past its TLS either."""
    chance = random.Random(7)
    asked = [name(chance) for _ in range(NAMES)]
    done = run_tool(PROGRAM, input="".join(f"{each.hex()}\n" for each in asked))
    assert done.returncode == 0, done.stderr
    theirs = [bytes.fromhex(line).decode() for line in done.stdout.split("\n")[:-1]]
    assert len(theirs) == NAMES
    differing = [
        (der.hex(), their, ours)
        for der, their in zip(asked, theirs, strict=True)
        if (ours := distinguished_name(der)) != their
    ]
    assert not differing, differing[:5]


RULES: Final = (
    "DEFAULT",
    "RULE:^CN=(.*?),.*$/$1/",
    "RULE:^CN=(.*?),.*$/$1/L,DEFAULT",
    "RULE:^CN=(.*?)(,.*)?$/$1/U",
    "RULE:CN=(.*?)(,.*)?/$1/",
    "RULE:CN=(.*?),OU=(.*?),O=(.*?)/$1@$2.$3/L , RULE:CN=([^,]+)/$1/",
    "RULE:.*/x/",
    "RULE:(.*)/<$1>/",
    "RULE:(.*)/<$0>/",
    r"RULE:^CN=(\w+)(,.*)?$/\$$1/,RULE:^CN=(\S+)\s.*$/two-$1/",
    r"RULE:^CN=broker-(\d+)$/broker/,DEFAULT",
    "RULE:(?i)^cn=super$/admin/",
    "RULE:(?i)^cn=kafka(,.*)?$/admin/,RULE:^(..)(.*)$/$2$1/U",
    "RULE:[^=]*=([^,]*),?/$1;/",
    "RULE:(CN=)?(.*)/$1-$2/",
)
NAMED: Final = (
    "", "CN=", "CN=alice", "CN=Alice,OU=Kitchen,O=Castle\\, Inc.,C=CZ", "O=x,CN=alice",
    "CN=broker-7", "CN=broker-\u0661", "CN=\u017fuper", "CN=SUPER", "cn=\u212aafka", "CN=KAFKA,O=x",
    "CN=\u00e4lice", "CN=alice\u00a0x", "CN=alice x", "CN=\u0130stra\u00dfe,O=x",
    "CN=\u039f\u0394\u039f\u03a3,O=x", "CN=a+OU=b,O=c", "CN=a$1\\\\b,O=x", "CN=line\nbreak,O=x",
    "CN=\U0001f511,O=x",
)  # fmt: skip


def test_rules_make_the_same_users_of_names() -> None:
    """Of the whole name, of parts of it, in other letters; or no user."""
    asked = [(rules, each) for rules in RULES for each in NAMED]
    lines = (f"{rules.encode().hex()} {each.encode().hex()}\n" for rules, each in asked)
    done = run_tool(RULES_PROGRAM, input="".join(lines))
    assert done.returncode == 0, done.stderr
    theirs = [bytes.fromhex(line).decode() for line in done.stdout.split("\n")[:-1]]
    ours = [user_of(rules, each) for rules, each in asked]
    assert len(theirs) == len(asked)
    differing = [it for it in zip(asked, theirs, ours, strict=True) if it[1] != it[2]]
    assert not differing, differing[:5]


def user_of(rules: str, named: str) -> str:
    """The user behind a sign, or `none`."""
    users = (rule.apply(named) for rule in parse_rules(rules))
    return next((f"={each}" for each in users if each is not None), "none")
