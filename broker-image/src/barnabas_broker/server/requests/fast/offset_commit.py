"""The short way of an OffsetCommit request that is ordinary in everything, from frame to answer.

Consumers commit often, one small request after the other, so that what the general way
(`server.requests.handlers.offset_commit`) does with objects and a turn of the coordinator is done
with tuples for what nearly all requests hold: a few partitions that exist, committed by a member
where its group has it, whose records count as soon as they are appended. Every check of the general
way is made here too. Nothing is changed before all of them have passed, so that whatever is not
ordinary, errors and waits included, simply goes the general way from its beginning.
"""

import logging
from typing import TYPE_CHECKING, Final

from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.server.requests.fast.reading_rights import ReadingRights
from barnabas_broker.server.requests.handler import UnanswerableError
from barnabas_kafka.protocol.plain_commit import PlainTopic, answer, read

if TYPE_CHECKING:
    from barnabas_broker.server.requests.broker_services import BrokerServices
    from barnabas_broker.server.requests.dispatch import Caller

log = logging.getLogger(__name__)

PARTITIONS_AT_ONCE: Final = 100
"""Requests for more are served in turns: these take a fraction of a millisecond."""

FRAME_BYTES_AT_ONCE: Final = 512 << 10
"""Larger requests are not ordinary, whatever they hold: they are not even copied to be read. A
hundred offsets with metadata of 4 KiB each are less."""


class PlainCommits:
    """Serves what is ordinary, and leaves the rest alone."""

    __slots__ = ("_broker", "_rights")

    def __init__(self, broker: "BrokerServices", authorizer: Authorizer) -> None:
        self._broker = broker
        self._rights = ReadingRights(authorizer)

    def serve(
        self, frame: memoryview, version: int, correlation_id: int, caller: "Caller", now_ms: int
    ) -> bytes | None:
        """What to send, or None for a request that the general way has to look at.

        Raises UnanswerableError for any bug: what was appended is not known then, so that nothing
        may be tried again.
        """
        if len(frame) > FRAME_BYTES_AT_ONCE:
            return None
        try:
            request = read(bytes(frame), version, PARTITIONS_AT_ONCE)
            if request is None:
                return None
            group_id, topics = request[0], request[5]
            if not (self._rights.unlimited or self._may_commit(group_id, topics, caller)):
                return None
            if not self._exist(topics):
                return None
            if not self._broker.groups.commit_plain(request, version, now_ms):
                return None
            return answer(version, correlation_id, topics)
        except Exception as error:  # The boundary between one request and the broker's life.
            host = caller.client_host
            log.exception("Request failed: OffsetCommit version %d from %s", version, host)
            raise UnanswerableError("OffsetCommit failed and cannot say so") from error

    def _may_commit(self, group_id: str, topics: list[PlainTopic], caller: "Caller") -> bool:
        """Whether the caller may read all topics in this group."""
        rights = self._rights
        return rights.of_group(caller, group_id) and all(
            rights.of_topic(caller, name) for name, _, _ in topics
        )

    def _exist(self, topics: list[PlainTopic]) -> bool:
        """Whether there are all partitions."""
        known = self._broker.image.topics
        for name, _, partitions in topics:
            topic = known.get(name)
            if topic is None:
                return False
            for each in partitions:
                if topic.partition(each[0]) is None:
                    return False
        return True
