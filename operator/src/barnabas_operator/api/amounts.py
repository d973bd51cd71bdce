"""Quantities of bytes and durations, as Kubernetes and people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_DECIMAL: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
# Beside those that resources of ours may have: the API server writes 1.1Gi as 1181116006400m.
_OTHERS: Final[Mapping[str, Decimal | int]] = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "E": 10**18,
    "Ei": 2**60,
}
_STORED: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,3})|(n|u|Ei?))?")
_QUANTITY: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?")
_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION_PART: Final = re.compile(r"([0-9]+)(ms|s|m|h|d)")


def stored_bytes(text: str) -> int:
    """The bytes of a quantity in any form that the API server stores, rounded up; 0 if unknown."""
    found = _amount(text)
    if found is None and (match := _STORED.fullmatch(text)) is not None:
        number, exponent, suffix = match.groups()
        found = Decimal(number).scaleb(int(exponent or 0)) * _OTHERS.get(suffix or "", 1)
    return 0 if found is None else math.ceil(found)


def same_quantity(one: str, other: str) -> bool:
    """Whether two texts are the same amount: the API server writes 1024Mi as 1Gi, 1000m as 1."""
    found = _amount(one)
    return found is not None and found == _amount(other)


def _amount(text: str) -> Decimal | None:
    if text.endswith("m") and text[:-1].isdecimal():
        return Decimal(text[:-1]) / 1000
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    suffix = match[2] or ""
    return Decimal(match[1]) * (_BINARY.get(suffix) or _DECIMAL[suffix])


def format_bytes(count: int) -> str:
    """A quantity for a Kubernetes object: whole Gi from 10Gi on, whole Mi below, rounded up."""
    unit, factor = ("Gi", 2**30) if count >= 10 * 2**30 else ("Mi", 2**20)
    return f"{-(-count // factor)}{unit}"


def show_bytes(count: int) -> str:
    """A number of bytes for a person: 1.5 GiB."""
    for unit, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def parse_duration_ms(text: str) -> int:
    """The milliseconds of a duration such as 7d or 1h30m; raises ValueError."""
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is no duration such as 5s, 12h or 7d")
    return sum(int(number) * _UNITS_MS[unit] for number, unit in parts)
