"""The ledger: the image is what the store says, and listeners hear of each change."""

from pathlib import Path

import pytest

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.controller.metadata_store import MetadataStore
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.store import Create
from barnabas_kafka.errors import ErrorCode, KafkaError


def test_the_image_is_read_back_from_the_store(tmp_path: Path) -> None:
    """Topics and settings that a transaction touched are in the next image, which all hear of."""
    store = EmbeddedStore.open(tmp_path, now_ms=1)
    metadata = MetadataStore(store)
    seen: list[MetadataImage] = []
    metadata.add_listener(lambda _old, new: seen.append(new))
    data = b'{"version":3,"partitions":{"0":[1]},"topic_id":"9kGS9sbSQ0eRKIYI4JWbnw"}'
    parents = [Create("/brokers"), Create("/brokers/topics"), Create("/config")]
    metadata.commit(
        [*parents, Create("/brokers/topics/a", data), Create("/config/brokers")],
        topics=["a"],
        broker_configs=True,
        now_ms=1,
    )
    assert metadata.image.topics["a"].partitions[0].replicas == (1,)
    assert seen == [metadata.image]
    metadata.commit([], topics=[], now_ms=2)
    assert len(seen) == 1
    store.close()


def test_a_store_that_fails_is_an_error_for_the_client(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says why; nothing is published."""
    store = EmbeddedStore.open(tmp_path, now_ms=1)
    metadata = MetadataStore(store)
    store.close()
    with pytest.raises(KafkaError) as caught:
        metadata.commit([Create("/a")], now_ms=1)
    assert caught.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "is closed" in caplog.text
    assert metadata.image.version == 0
