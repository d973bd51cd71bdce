"""Names of certificates as Java writes them, which ACLs and mapping rules know clients by."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pytest

from barnabas_broker.security.ssl_principals import distinguished_name
from tests.oracle.apache import run_tool

pytestmark = pytest.mark.jvm

PROGRAM: Final = str(Path(__file__).parent / "java" / "Names.java")
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
