"""Asking two brokers the same and comparing what they answer.

A scenario is a function that puts questions to a `Side`, each under a label. It runs once on each
broker, and `differences` tells where the answers part once what must differ is taken out of them:
ids that a broker draws, the moment of an append, addresses, paths, sizes of disks, and the wording
of messages (not whether there is one).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from barnabas_kafka.ids import ZERO_UUID
from barnabas_kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas_kafka.protocol.messages.metadata import MetadataResponse
from barnabas_kafka.protocol.registry import ApiKey, api
from barnabas_kafka.protocol.schema import Request, Struct
from barnabas_kafka.records import batch, legacy
from tests.clients import START_MS
from tests.clients.wire import Wire, metadata
from tests.waiting import ANSWER, seconds, wait_for

#: What is told instead of an answer.
CLOSED: Final = "the connection is closed"
SILENCE: Final = "no answer"
CUT_SHORT: Final = "a batch cut short"
#: How long a broker may take to create a topic.
CREATE_MS: Final = 600_000
#: Machine seconds until silence is taken for the answer. Apache never answers some requests that
#: make it stumble, and nothing else tells of it.
SILENT: Final = 1.5

#: Beside an error no client looks at these; the start mattered to UNKNOWN_PRODUCER_ID alone, which
#: brokers no longer answer. The protocol of a group that was not joined is null or empty.
_IMMATERIAL_BESIDE_ERRORS: Final = {"log_start_offset", "aborted_transactions", "protocol_name"}
_TEXTS: Final = {"error_message", "batch_index_error_message", "documentation"}
_OWN: Final = {
    "host", "port", "cluster_id", "log_dir", "total_bytes", "usable_bytes",
}  # fmt: skip
#: Where the order is the broker's own affair: the field by which elements are told apart.
_IDENTITIES: Final = (
    "name", "topic", "partition_index", "partition", "index", "node_id", "broker_id", "api_key",
    "resource_name",
)  # fmt: skip
_IN_ORDER: Final = {"synonyms", "record_errors"}
_TIMES: Final = {"log_append_time_ms", "timestamp", "transaction_start_time_ms", "last_timestamp"}
#: The UUID that a member's id ends with.
_DRAWN_LENGTH: Final = 36
#: Ids that a broker draws, with the first one there is.
_FIRST_DRAWN: Final = {"producer_id": 0, "session_id": 1}


class Side:
    """One of the two brokers, and what it has answered so far, by label.

    One that `stumbles` is not waited for long when it is asked what it may never answer. `source`
    is the address that it is asked from, `user` the name, and the password, of the client. One that
    keeps `words` tells what error messages say.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        stumbles: bool = False,
        source: str | None = None,
        user: str = "",
        words: bool = False,
    ) -> None:
        self.bootstrap = bootstrap
        self.source = source
        self.user = user
        self.words = words
        self.stumbles = stumbles
        self.reported: dict[str, Any] = {}
        self._wire: Wire | None = None
        self._ids: dict[UUID, str] = {}
        self._members: dict[str, str] = {}

    def ask(self, label: str, request: Request, version: int, *, trap: bool = False) -> Any:
        """Ask and keep the answer under `label`; also returns it, or None if there is none.

        `trap`: whether a broker that stumbles may never answer.
        """
        assert label not in self.reported, label
        answer = self._answer(request, version, trap=trap)
        self.reported[label] = self._plain(answer)
        return None if isinstance(answer, str) else answer

    def ask_until(
        self, label: str, request: Request, version: int, *, settled: Callable[[Any], bool]
    ) -> Any:
        """Ask until the answer is settled: Apache acts on some changes a little later."""
        answer = self.wait(request, version, settled=settled)
        self.reported[label] = self._plain(answer)
        return None if isinstance(answer, str) else answer

    def wait(self, request: Request, version: int, *, settled: Callable[[Any], bool]) -> Any:
        """Ask until the answer is settled, or there is none, and do not keep it."""
        return wait_for(
            f"a settled answer to {type(request).__name__} of {self.bootstrap}",
            lambda: self._answer(request, version),
            until=lambda answer: isinstance(answer, str) or settled(answer),
        )

    def ask_all(
        self, label: str, request: Request, versions: Iterable[int], *, trap: bool = False
    ) -> None:
        """The same in several versions."""
        for version in versions:
            self.ask(f"{label}, version {version}", request, version, trap=trap)

    def topic(self, name: str, *, partitions: int = 1, **config: Any) -> str:
        """Create a topic, with dots for the underscores in names of settings."""
        configs = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in config.items()
        ]
        new = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=configs
        )
        request = CreateTopicsRequest(topics=[new], timeout_ms=CREATE_MS)
        answer = self._answer(request, 7)
        assert isinstance(answer, CreateTopicsResponse), answer
        (created,) = answer.topics
        assert created.error_code == 0, created
        self._ids[created.topic_id] = name
        return name

    def id_of(self, name: str) -> UUID:
        """The id this broker gave the topic."""
        # Apache tells its broker of a new topic a little later.
        answer = self.wait(metadata(name), 12, settled=lambda it: not it.topics[0].error_code)
        assert isinstance(answer, MetadataResponse), answer
        (found,) = answer.topics
        assert not found.error_code, found
        self._ids[found.topic_id] = name
        return found.topic_id

    def name_topic(self, topic_id: UUID, name: str) -> None:
        """From here on tell this id by the name of its topic."""
        self._ids[topic_id] = name

    def keep(self, label: str, answer: Any) -> None:
        """Keep an answer that was waited for, or that came by another connection."""
        assert label not in self.reported, label
        self.reported[label] = self._plain(answer)

    def name_member(self, drawn: str) -> None:
        """From here on tell the id of a group's member without what the broker drew."""
        prefix = drawn[:-_DRAWN_LENGTH]
        self._members.setdefault(drawn, f"{prefix}its own {len(self._members)}")

    def close(self) -> None:
        """Let go of the connection and of the answers."""
        self.reported = {}
        self._members = {}
        self.hang_up()

    def hang_up(self) -> None:
        """Ask by a new connection from now on."""
        if self._wire is not None:
            self._wire.__exit__(None, None, None)
            self._wire = None

    def _answer(self, request: Request, version: int, *, trap: bool = False) -> Any:
        if self._wire is None:
            self._wire = Wire(self.bootstrap, source=self.source)
            if self.user:
                self._wire.log_in(self.user, self.user)
        self._wire.timeout_s = seconds(SILENT if trap and self.stumbles else ANSWER)
        try:
            return self._wire.ask(request, api(ApiKey(request.api_key)).response, version)
        except (EOFError, ConnectionError):
            self.hang_up()
            return CLOSED
        except TimeoutError:
            self.hang_up()
            return SILENCE

    def _plain(self, value: Any, name: str = "") -> Any:
        """An answer as plain values that do not depend on who gave it."""
        if name in _TEXTS and isinstance(value, str):
            return value if self.words else "some text" if value else ""
        if name in _OWN and value not in (None, -1, ""):
            return f"its own {name}"
        if isinstance(value, Struct):
            reported = {
                key: self._plain(getattr(value, key), key) for key in type(value).__fields__
            }
            if reported.get("error_code"):
                reported |= dict.fromkeys(_IMMATERIAL_BESIDE_ERRORS & reported.keys(), "immaterial")
            return reported
        if isinstance(value, list):
            plain = [self._plain(element) for element in value]
            if name == "partitions" and all(isinstance(element, int) for element in plain):
                return sorted(plain)
            return plain if name in _IN_ORDER else _sorted(plain)
        if isinstance(value, UUID):
            return "no id" if value == ZERO_UUID else f"id of {self._ids.get(value, 'a topic')}"
        if isinstance(value, (bytes, memoryview)):
            return list(_batches(value)) if name == "records" else bytes(value)
        if isinstance(value, str):
            return self._members.get(value, value)
        return _number(name, value)


def named(reported: Any, drawn: Mapping[str, str], name: str = "") -> Any:
    """What was told, with names in the place of ids that the broker drew.

    Lists stand in an order that does not depend on these ids any more.
    """
    if isinstance(reported, dict):
        return {key: named(value, drawn, key) for key, value in reported.items()}
    if isinstance(reported, list):
        renamed = [named(element, drawn) for element in reported]
        return renamed if name in _IN_ORDER else _sorted(renamed)
    return drawn.get(reported, reported) if isinstance(reported, str) else reported


def differences(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Where two answers differ, as `path: Apache's value, ours`."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in [*theirs, *(key for key in ours if key not in theirs)]:
            where = f"{path}.{key}" if path else str(key)
            yield from differences(theirs.get(key, "absent"), ours.get(key, "absent"), where)
    elif isinstance(theirs, list) and theirs[-1:] == [CUT_SHORT] and isinstance(ours, list):
        # Apache fills a response to its limit, or to the size before a conversion; we end with a
        # whole batch. Clients drop the rest.
        yield from differences(theirs[:-1], ours[: len(theirs) - 1], path)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for position, (their, our) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(their, our, f"{path}[{_identity(their) or position}]")
    elif theirs != ours and not (path.endswith("_message") and not theirs):
        # Clients show a text where there is one: ours may say more than Apache, never less.
        yield f"{path}: Apache {theirs!r}, ours {ours!r}"


def _number(name: str, value: Any) -> Any:
    if name in _TIMES and isinstance(value, int) and value > START_MS:
        return value if value < START_MS + 1_000_000 else "now"
    if name in _FIRST_DRAWN and isinstance(value, int) and value >= _FIRST_DRAWN[name]:
        return f"a {name}"
    return value


def _identity(element: Any) -> str:
    if isinstance(element, dict):
        for name in _IDENTITIES:
            if element.get(name) is not None:
                return str(element[name])
    return ""


def _sorted(elements: Sequence[Any]) -> list[Any]:
    if not elements or not all(isinstance(element, dict) for element in elements):
        return list(elements)
    return sorted(elements, key=lambda element: (_identity(element), repr(element)))


def _batches(data: bytes | memoryview) -> Iterator[Any]:
    """What fetched bytes hold, whatever their format; a batch cut short is named, not shown."""
    view = memoryview(data)
    position = 0
    while len(view) - position > batch.MAGIC_POSITION:
        size = int.from_bytes(view[position + 8 : position + 12], "big") + 12
        if len(view) - position < size:
            break
        if view[position + batch.MAGIC_POSITION] < 2:
            for message in legacy.messages(bytes(view[position : position + size])):
                yield tuple(message)[:4]
        else:
            header = batch.parse_header(view, position)
            yield (
                (header.base_offset, header.last_offset, header.leader_epoch, header.attributes),
                (header.producer_epoch, header.base_sequence),
                [record[:1] + record[2:] for record in batch.records(view, position)],
            )
        position += size
    if position < len(view):
        yield CUT_SHORT


def accidents(lines: Iterable[str], deliberate: Collection[str]) -> list[str]:
    """The differences that match none of the patterns of those on purpose."""
    return [line for line in lines if not any(re.match(each, line) for each in deliberate)]


def no_longer_different(lines: Collection[str], deliberate: Iterable[str]) -> list[str]:
    """The patterns of differences on purpose that no difference matches."""
    return [each for each in deliberate if not any(re.match(each, line) for line in lines)]
