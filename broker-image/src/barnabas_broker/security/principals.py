"""Principals: the identity that every request carries (`KafkaPrincipal`)."""

from dataclasses import dataclass, field

USER = "User"


@dataclass(frozen=True, slots=True)
class Principal:
    """A kind and a name, written `User:alice` in ACLs, super.users and logs."""

    kind: str
    name: str
    token_authenticated: bool = field(default=False, compare=False, repr=False)
    """Whether it has authenticated with a delegation token of its own."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> "Principal":
        """Read `Kind:name`; the name itself may hold colons (certificate subjects do).

        Raises ValueError where there is no colon or no kind.
        """
        kind, colon, name = text.partition(":")
        if not colon or not kind:
            raise ValueError(f"a principal is written Kind:name, not {text!r}")
        return cls(kind, name)


# What a listener without authentication makes of every peer (Kafka's KafkaPrincipal.ANONYMOUS).
ANONYMOUS = Principal(USER, "ANONYMOUS")
