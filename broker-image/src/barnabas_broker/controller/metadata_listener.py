"""What a broker does as a member of a cluster that another broker controls: it obeys.

`cluster.control` says what an image becomes by a request of the controller; here the image is
published, and the settings of new topics are read, which the controller does not send.
"""

import logging
from collections.abc import Iterable

from barnabas_broker.cluster.control import Configs, FencingEpochs, with_leadership, with_metadata
from barnabas_broker.controller.loading import load_configs
from barnabas_broker.controller.metadata_store import MetadataStore
from barnabas_broker.zk.store import CoordinationError
from barnabas_broker.zk.znodes import ConfigZnode, MalformedZnodeError
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from barnabas_kafka.protocol.messages.update_metadata import UpdateMetadataRequest
from barnabas_zookeeper.errors import ZooKeeperError

_log = logging.getLogger(__name__)


class MetadataListener:
    """Obeys controllers in the order of their epochs; `epochs` fences the requests."""

    def __init__(self, metadata: MetadataStore, *, broker_id: int) -> None:
        self.epochs = FencingEpochs()
        self._metadata = metadata
        self._broker_id = broker_id

    def registered(self, broker_epoch: int) -> None:
        """Requests for an earlier registration are refused from now on."""
        self.epochs = FencingEpochs(self.epochs.controller_epoch, broker_epoch)

    def observe_controller_epoch(self, controller_epoch: int) -> None:
        """There is, or was, a controller of that epoch; earlier ones are refused from now on."""
        latest = max(controller_epoch, self.epochs.controller_epoch)
        self.epochs = FencingEpochs(latest, self.epochs.broker_epoch)

    def take_metadata(self, request: UpdateMetadataRequest) -> None:
        """Do what UpdateMetadata says; the controller's and broker's epochs are checked."""
        configs = self._configs(topic_state.topic_name for topic_state in request.topic_states)
        image = with_metadata(
            self._metadata.image, request, broker_id=self._broker_id, configs=configs
        )
        self._metadata.publish(image)

    def take_leadership(self, request: LeaderAndIsrRequest) -> dict[TopicPartition, ErrorCode]:
        """Do what LeaderAndIsr says, and answer for each partition; epochs are checked."""
        configs = self._configs(topic_state.topic_name for topic_state in request.topic_states)
        image, answers = with_leadership(
            self._metadata.image, request, broker_id=self._broker_id, configs=configs
        )
        failures = self._metadata.publish(image)
        return {
            tp: failures[tp.topic].code
            if error is ErrorCode.NONE and tp.topic in failures
            else error
            for tp, error in answers.items()
        }

    def _configs(self, topics: Iterable[str]) -> Configs:
        """The settings of topics that are new here.

        Without coordination data they start with the broker's, and everything is read again when
        the connection is back.
        """
        new = [name for name in topics if name not in self._metadata.image.topics]
        try:
            return load_configs(self._metadata.store, [ConfigZnode.for_topic(name) for name in new])
        except (CoordinationError, ZooKeeperError, MalformedZnodeError) as error:
            _log.error("Failed to read topic configs: %s", error)
            self._metadata.fail()
            return {}
