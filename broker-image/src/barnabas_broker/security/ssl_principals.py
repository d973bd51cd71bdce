"""The principal of a client certificate: `ssl.principal.mapping.rules`, as SslPrincipalMapper.

A rule is DEFAULT, or `RULE:pattern/replacement/` with an `L` or `U` at its end for lower or upper
case. The pattern must match the whole distinguished name; the first rule that matches counts. The
pattern is a regular expression in Python's syntax, which is Java's for what such rules use; `$1` in
a replacement is the first group.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas_broker.security.principals import USER, Principal

if TYPE_CHECKING:
    from cryptography.x509 import Name

_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/"
    r"(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))\s*(?:,|$)"
)
_GROUP: Final = re.compile(r"\\(.)|\$(\d)")
_EMAIL: Final = "1.2.840.113549.1.9.1"
_IA5_STRING: Final = 0x16


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
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        user = _GROUP.sub(lambda it: it[1] or match[int(it[2])] or "", self.replacement)
        return {"L": user.lower(), "U": user.upper()}.get(self.case, user)


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
            pattern = re.compile(found["pattern"])
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
    from cryptography import x509  # Late: only listeners that ask for certificates need it.

    name = distinguished_name(x509.load_der_x509_certificate(der).subject)
    users = (rule.apply(name) for rule in rules)
    user = next((each for each in users if each is not None), None)
    return None if user is None else Principal(USER, user)


def distinguished_name(subject: "Name") -> str:
    """The subject as Java's `X500Principal.getName()` writes it (RFC 2253).

    Attributes without a keyword in RFC 2253 are their number and value in hexadecimal; the e-mail
    address is the only one of them that is common.
    """
    return ",".join(
        "+".join(
            _email(str(each.value).encode())
            if each.oid.dotted_string == _EMAIL
            else each.rfc4514_string()
            for each in rdn
        )
        for rdn in reversed(subject.rdns)
    )


def _email(value: bytes) -> str:
    length = bytes([len(value)]) if len(value) < 128 else b"\x82" + len(value).to_bytes(2, "big")
    return f"{_EMAIL}=#{_IA5_STRING:02x}{length.hex()}{value.hex()}"
