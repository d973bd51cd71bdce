"""The file of a znode tree: a snapshot of it, and every transaction since.

Layout, one record per line, `<crc32 as 8 hex digits> <JSON>\\n`; the checksum covers the JSON:

    header        {"barnabas-znodes": 1, "zxid": Z, "nodes": N, "sessions": {…}}
    N nodes       {"path": …, "data": …, "czxid": …, …}            parents before children
    transactions  {"zxid": Z+1, "now": …, "ops": [["create", …], …]}

Data is text where it is UTF-8 (all that Kafka writes is), else base64 under "data64". ACLs
are written where they are not open, sessions where there are any.

What a crash can leave, and what reading makes of it:

* header and nodes: they are written to another file that is renamed when complete, so nothing
  short of damage touches them: refuse.
* the last line, cut off or garbled: a transaction that was being written and never acknowledged:
  ignore it.
* any other line with a wrong checksum, or transactions that do not follow each other: damage that
  no crash explains, and going on would lose topics silently: refuse.

This module is pure: lines in, tree out.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from barnabas_zookeeper.errors import ZooKeeperError
from barnabas_zookeeper.tree import (
    OPEN,
    Acl,
    Check,
    CloseSession,
    Create,
    Delete,
    OpenSession,
    Operation,
    SavedNode,
    Session,
    SetAcl,
    SetData,
    Tree,
)

FORMAT = 1
_HEADER_KEY = "barnabas-znodes"
_PLAIN_FIELDS = tuple(
    field.name for field in fields(SavedNode) if field.name not in ("data", "acl", "aversion")
)


class DamagedJournalError(Exception):
    """The file holds something that no crash explains; the message says in which line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")


@dataclass(frozen=True, slots=True)
class Journal:
    """What a file said: the tree, and whether its last line was cut off and ignored."""

    tree: Tree
    torn: bool


def _line(value: Any) -> bytes:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parse(line: bytes) -> Any:
    """The value of one line; raises ValueError where it is not intact."""
    if not line.endswith(b"\n"):
        raise ValueError("no end of line")
    text = line[9:-1]
    if line[:9] != b"%08x " % zlib.crc32(text):
        raise ValueError("wrong checksum")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _pack(data: bytes | None) -> dict[str, str]:
    if data is None:
        return {}
    try:
        return {"data": data.decode()}
    except UnicodeDecodeError:
        return {"data64": base64.b64encode(data).decode()}


def _unpack(value: dict[str, Any]) -> bytes | None:
    if "data64" in value:
        return base64.b64decode(value["data64"], validate=True)
    text = value.get("data")
    return None if text is None else text.encode()


def _pack_acl(acl: tuple[Acl, ...]) -> dict[str, Any]:
    if acl == OPEN:
        return {}
    return {"acl": [[each.permissions, each.scheme, each.id] for each in acl]}


def _unpack_acl(value: dict[str, Any]) -> tuple[Acl, ...]:
    if "acl" not in value:
        return OPEN
    return tuple(Acl(permissions, scheme, id_) for permissions, scheme, id_ in value["acl"])


def _pack_session(session: Session) -> dict[str, Any]:
    return {"timeout": session.timeout_ms, "password": session.password.hex()}


def _unpack_session(value: dict[str, Any]) -> Session:
    return Session(value["timeout"], bytes.fromhex(value["password"]))


def encode_snapshot(tree: Tree) -> Iterator[bytes]:
    """The lines of a file that holds the tree as it is."""
    header = {_HEADER_KEY: FORMAT, "zxid": tree.zxid, "nodes": len(tree)}
    sessions = {str(id_): _pack_session(each) for id_, each in tree.open_sessions.items()}
    yield _line(header | ({"sessions": sessions} if sessions else {}))
    for node in tree.save():
        plain = {name: getattr(node, name) for name in _PLAIN_FIELDS}
        aversion = {"aversion": node.aversion} if node.aversion else {}
        yield _line(plain | _pack(node.data) | _pack_acl(node.acl) | aversion)


def encode_transaction(operations: Sequence[Operation], *, zxid: int, now_ms: int) -> bytes:
    """The line of one committed transaction."""
    return _line({"zxid": zxid, "now": now_ms, "ops": [_encode_op(each) for each in operations]})


def _encode_op(operation: Operation) -> list[Any]:
    match operation:
        case Create(path, data, sequential, owner, acl):
            value = {"path": path, "seq": sequential, "owner": owner}
            return ["create", value | _pack(data) | _pack_acl(acl)]
        case SetData(path, data, version):
            return ["set", {"path": path, "version": version} | _pack(data)]
        case Delete(path, version):
            return ["delete", {"path": path, "version": version}]
        case Check(path, version):
            return ["check", {"path": path, "version": version}]
        case SetAcl(path, acl, version):
            return ["acl", {"path": path, "version": version} | _pack_acl(acl)]
        case OpenSession(id_, session):
            return ["open", {"session": id_} | _pack_session(session)]
        case CloseSession(id_):
            return ["close", {"session": id_}]


def _decode_op(encoded: Any) -> Operation:
    kind, value = encoded
    match kind:
        case "create":
            data, acl = _unpack(value), _unpack_acl(value)
            return Create(value["path"], data, value["seq"], value["owner"], acl)
        case "set":
            return SetData(value["path"], _unpack(value), value["version"])
        case "delete":
            return Delete(value["path"], value["version"])
        case "check":
            return Check(value["path"], value["version"])
        case "acl":
            return SetAcl(value["path"], _unpack_acl(value), value["version"])
        case "open":
            return OpenSession(value["session"], _unpack_session(value))
        case "close":
            return CloseSession(value["session"])
    raise ValueError(f"unknown operation {kind!r}")


def decode(lines: Iterable[bytes]) -> Journal:
    """Rebuild the tree. Raises DamagedJournalError for everything but a torn last line."""
    numbered = list(enumerate(lines, start=1))
    if not numbered:
        raise DamagedJournalError(1, "the file is empty")
    values = iter(numbered)
    tree = _decode_snapshot(values)
    torn = False
    for number, line in values:
        try:
            value = _parse(line)
        except ValueError as error:
            if number != len(numbered):
                raise DamagedJournalError(number, str(error)) from error
            torn = True
            break
        _replay(tree, number, value)
    return Journal(tree, torn)


def _decode_snapshot(lines: Iterator[tuple[int, bytes]]) -> Tree:
    number, first = next(lines)
    try:
        header = _parse(first)
        if header[_HEADER_KEY] != FORMAT:
            raise ValueError(f"format {header[_HEADER_KEY]} is not one that this release reads")
        nodes = []
        for _ in range(header["nodes"]):
            number, line = next(lines)
            value = _parse(line)
            data, acl = _unpack(value), _unpack_acl(value)
            for name in ("data", "data64", "acl"):
                value.pop(name, None)
            nodes.append(SavedNode(data=data, acl=acl, **value))
        given = header.get("sessions", {})
        sessions = {int(id_): _unpack_session(each) for id_, each in given.items()}
        return Tree.restore(nodes, zxid=header["zxid"], open_sessions=sessions)
    except StopIteration:
        raise DamagedJournalError(number, "the file ends inside its snapshot") from None
    except (AttributeError, KeyError, TypeError, ValueError, ZooKeeperError) as error:
        raise DamagedJournalError(number, str(error)) from error


def _replay(tree: Tree, number: int, value: Any) -> None:
    try:
        if value["zxid"] != tree.zxid + 1:
            raise ValueError(f"transaction {value['zxid']} follows transaction {tree.zxid}")
        tree.commit([_decode_op(each) for each in value["ops"]], now_ms=value["now"])
    except (AttributeError, KeyError, TypeError, ValueError, ZooKeeperError) as error:
        raise DamagedJournalError(number, str(error)) from error
