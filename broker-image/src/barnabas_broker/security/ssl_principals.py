"""The principal of a client certificate: `ssl.principal.mapping.rules`, as SslPrincipalMapper.

A rule is DEFAULT, or `RULE:pattern/replacement/` with an `L` or `U` at its end for lower or upper
case. The first rule whose pattern matches the whole distinguished name counts. The user is the name
with each part replaced that the pattern then finds, as by Java's `replaceAll`: without `^` and `$`
a part may be shorter than the whole. The pattern is a regular expression in Python's syntax, which
is Java's for what such rules use; `\\w` and the like are ASCII, and so is what `(?i)` takes for the
same letter. `$1` in a replacement is the first group.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas_broker.security.principals import USER, Principal

_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/"
    r"(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))\s*(?:,|$)"
)
_GROUP: Final = re.compile(r"\\(.)|\$(\d)")
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""Those of RFC 2253."""
_TEXTS: Final = frozenset((12, 19, 20, 22, 27, 30))
"""The types of DER whose bytes Java takes for UTF-8, BMPString among them."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANKS: Final = " \r"
_VERSION: Final = 0xA0


@dataclass(frozen=True, slots=True)
class MappingRule:
    """One rule; without a pattern it is DEFAULT, which takes the name as it is."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """The user name, None where the rule is not for this distinguished name."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        user = self.pattern.sub(self._replaced, name)
        return {"L": user.lower(), "U": user.upper()}.get(self.case, user)

    def _replaced(self, match: re.Match[str]) -> str:
        return _GROUP.sub(lambda it: it[1] or match[int(it[2])] or "", self.replacement)


def parse_rules(text: str) -> tuple[MappingRule, ...]:
    """Read the rules; raises ValueError with what is wrong with which."""
    rules = []
    position = 0
    while position < len(text):
        found = _RULE.match(text, position)
        if found is None:
            raise ValueError(f"not DEFAULT or RULE:pattern/replacement/[LU]: {text[position:]!r}")
        position = found.end()
        if found["default"]:
            rules.append(MappingRule())
            continue
        try:
            pattern = re.compile(found["pattern"], re.ASCII)
        except re.error as error:
            raise ValueError(f"malformed pattern {found['pattern']!r}: {error}") from None
        groups = [int(number) for _, number in _GROUP.findall(found["replacement"]) if number]
        if any(number > pattern.groups for number in groups):
            raise ValueError(
                f"replacement {found['replacement']!r} names a group that is not there"
            )
        rules.append(MappingRule(pattern, found["replacement"], found["case"]))
    return tuple(rules or [MappingRule()])


def certificate_principal(der: bytes, rules: Sequence[MappingRule]) -> Principal | None:
    """The principal of a certificate in DER, None where no rule matches; raises ValueError."""
    name = distinguished_name(_subject(der))
    users = (rule.apply(name) for rule in rules)
    user = next((each for each in users if each is not None), None)
    return None if user is None else Principal(USER, user)


def distinguished_name(der: bytes) -> str:
    """A name in DER as Java's `X500Principal.getName()` writes it (RFC 2253); raises ValueError.

    The last attribute comes first. Attributes without a keyword are their number and the whole
    value in hexadecimal digits, and so are values that are no text.
    """
    ((_, name, _),) = _elements(der)
    groups = [
        "+".join(_attribute(attribute) for _, attribute, _ in _elements(group))
        for _, group, _ in _elements(name)
    ]
    return ",".join(reversed(groups))


def _subject(certificate: bytes) -> bytes:
    """The subject of a certificate."""
    ((_, whole, _),) = _elements(certificate)
    (_, signed, _), *_ = _elements(whole)
    fields = [whole for tag, _, whole in _elements(signed) if tag != _VERSION]
    # Behind the serial number, the signature's algorithm, the issuer and the validity.
    if len(fields) < 5:
        raise ValueError("the certificate has no subject")
    return fields[4]


def _attribute(content: bytes) -> str:
    (_, number, _), (tag, value, whole) = _elements(content)
    keyword = _KEYWORDS.get(_dotted(number))
    if keyword is None or tag not in _TEXTS:
        return f"{keyword or _dotted(number)}=#{whole.hex()}"
    return f"{keyword}={_escaped(value.decode(errors='replace'))}"


def _escaped(text: str) -> str:
    text = "".join(f"\\{c}" if c in _ESCAPED else c for c in text).replace("\0", "\\00")
    begin = len(text) - len(text.lstrip(_BLANKS))
    end = len(text.rstrip(_BLANKS))
    return "".join(c if begin <= at < end else f"\\{c}" for at, c in enumerate(text))


def _dotted(number: bytes) -> str:
    """An object identifier in its usual form."""
    arcs = [0]
    for byte in number:
        arcs[-1] = arcs[-1] << 7 | byte & 0x7F
        if byte < 0x80:
            arcs.append(0)
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:-1])))


def _elements(der: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Tag, content and all of each element; raises ValueError for what is no DER."""
    at = 0
    while at < len(der):
        begin, tag, at = at, der[at], at + 2
        size = der[at - 1] if at <= len(der) else len(der)
        if size >= 0x80:
            count = size & 0x7F
            size, at = int.from_bytes(der[at : at + count]), at + count
        if at + size > len(der):
            raise ValueError("the certificate is malformed")
        yield tag, der[at : at + size], der[begin : at + size]
        at += size
