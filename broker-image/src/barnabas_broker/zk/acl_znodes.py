"""Znodes of the ACLs of Kafka's resources (`kafka.zk.ZkAclStore`, `AclEntry`; KIP-290).

One znode for each resource pattern, with all that is said of it, and beside it one for each change,
which names what brokers read again. Literal patterns have lain where they do since 0.9, prefixed
ones since 2.0. Types, operations and permissions are words here, written as `Topic`,
`TransactionalId`, `DescribeConfigs`, `Allow`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas_broker.zk.znodes import MalformedZnodeError, decode_object, encode_object

LITERAL: Final = "LITERAL"
PREFIXED: Final = "PREFIXED"
CHANGE_PREFIX: Final = "acl_changes_"

ROOTS: Final = {LITERAL: "/kafka-acl", PREFIXED: "/kafka-acl-extended/prefixed"}
"""Where patterns lie, by their type."""

CHANGE_ROOTS: Final = {LITERAL: "/kafka-acl-changes", PREFIXED: "/kafka-acl-extended-changes"}
"""Where their changes are announced."""

TYPES: Final = ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User")


class Entry(NamedTuple):
    """What is said of one principal."""

    principal: str
    permission: str
    operation: str
    host: str


@dataclass(frozen=True, slots=True)
class AclZnode:
    """`/kafka-acl/<Type>/<name>` or `/kafka-acl-extended/prefixed/<Type>/<name>`."""

    pattern: str
    type: str
    name: str

    @property
    def path(self) -> str:
        """Where the entries are kept."""
        return f"{ROOTS[self.pattern]}/{self.type}/{self.name}"

    @staticmethod
    def encode(entries: Iterable[Entry]) -> bytes:
        """Version 1."""
        acls = [
            {
                "principal": each.principal,
                "permissionType": each.permission,
                "operation": each.operation,
                "host": each.host,
            }
            for each in sorted(entries)
        ]
        return encode_object({"version": 1, "acls": acls})

    def decode(self, data: bytes | None) -> list[Entry]:
        """Nothing for a znode without data. Raises MalformedZnodeError."""
        if not data:
            return []
        value = decode_object(self.path, data)
        try:
            if value["version"] != 1:
                raise MalformedZnodeError(self.path, f"ACLs of version {value['version']}")
            found = [
                Entry(each["principal"], each["permissionType"], each["operation"], each["host"])
                for each in value["acls"]
            ]
        except (KeyError, TypeError) as error:
            raise MalformedZnodeError(self.path, f"not ACLs ({error!r})") from error
        for entry in found:
            if not all(isinstance(text, str) for text in entry) or ":" not in entry.principal:
                raise MalformedZnodeError(self.path, f"not ACLs ({entry})")
        return found

    @property
    def change_path(self) -> str:
        """The znode that announces a change, without its number."""
        return f"{CHANGE_ROOTS[self.pattern]}/{CHANGE_PREFIX}"

    def encode_change(self, type_name: str) -> bytes:
        """The announcement of a change; `type_name` is the type as `TRANSACTIONAL_ID`."""
        if self.pattern == LITERAL:
            return f"{type_name}:{self.name}".encode()
        value = {
            "version": 1,
            "resourceType": type_name,
            "name": self.name,
            "patternType": self.pattern,
        }
        return encode_object(value)


def decode_change(path: str, data: bytes | None) -> tuple[str, str, str]:
    """Pattern type, resource type in any spelling, and name. Raises MalformedZnodeError."""
    if path.startswith(CHANGE_ROOTS[PREFIXED]):
        value = decode_object(path, data)
        named = value.get("patternType"), value.get("resourceType"), value.get("name")
        pattern, kind, name = named
        if not (isinstance(pattern, str) and isinstance(kind, str) and isinstance(name, str)):
            raise MalformedZnodeError(path, "it names no resource pattern")
        return pattern, kind, name
    try:
        kind, colon, name = (data or b"").decode().partition(":")
    except UnicodeDecodeError as error:
        raise MalformedZnodeError(path, "it names no resource") from error
    if not colon:
        raise MalformedZnodeError(path, "it names no resource")
    return LITERAL, kind, name
