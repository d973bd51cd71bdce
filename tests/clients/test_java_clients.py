"""kafka-clients from 0.10.1 to 4.x: records of all codecs, timestamps, admin, idempotence.

One JVM per release runs all its cases; the tests below look at one case each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.clients import java_probe
from tests.clients.brokers import Broker
from tests.clients.conftest import MakeTopic
from tests.clients.librdkafka import read_all
from tests.waiting import ANSWER, seconds

Results = dict[str, dict[str, Any]]
RunProbe = Callable[[str], Results]

FOREIGN = [
    (None if i % 5 == 0 else b"key-%d" % i, None if i % 6 == 0 else b"value %d " % i * (i % 40))
    for i in range(200)
]
RELEASES = java_probe.marked(java_probe.ERAS)
RELEASE_AND_CODEC = [
    pytest.param(release.values[0], codec, marks=release.marks)
    for release in RELEASES
    for codec in java_probe.codecs(str(release.values[0]))
]
WITH_ADMIN = java_probe.marked(it for it, era in java_probe.ERAS.items() if era != "v010")

pytestmark = pytest.mark.jvm


def digest(records: Iterable[tuple[bytes | None, bytes | None]]) -> str:
    """The probe's own digest over keys and values."""
    sha = hashlib.sha256()
    for record in records:
        for part in record:
            sha.update(b"-" if part is None else b"%d:" % len(part) + part)
    return sha.hexdigest()


@pytest.fixture(scope="session")
def foreign_topics(broker: Broker, make_topic: MakeTopic) -> tuple[str, str]:
    """Topics librdkafka filled, with headers: one in gzip, one in zstd."""
    names = []
    for codec in ("gzip", "zstd"):
        name = make_topic()
        producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": codec})
        for key, value in FOREIGN:
            producer.produce(name, value, key, headers={"origin": b"librdkafka"})
        assert producer.flush(seconds(ANSWER)) == 0
        names.append(name)
    return names[0], names[1]


@pytest.fixture(scope="session")
def probe(broker: Broker, make_topic: MakeTopic, foreign_topics: tuple[str, str]) -> RunProbe:
    """Run all cases of a release once and remember what they found."""
    remembered: dict[str, Results] = {}

    def run(release: str) -> Results:
        if release not in remembered:
            prefix = f"java-{release}"
            codecs = java_probe.codecs(release)
            for suffix in [*codecs, "acks0"]:
                make_topic(name=f"{prefix}-{suffix}")
            remembered[release] = java_probe.run(
                release, broker.bootstrap, prefix, ",".join(codecs), *foreign_topics
            )
        return remembered[release]

    return run


@pytest.mark.parametrize(("release", "codec"), RELEASE_AND_CODEC)
def test_records_come_back_as_sent(
    probe: RunProbe, broker: Broker, release: str, codec: str
) -> None:
    """Offsets, timestamps, keys, values and headers; then another client sees the same bytes."""
    found = probe(release)[f"roundtrip-{codec}"]
    assert "error" not in found, found["error"]
    # The plain topic was used by later cases too, and its beginning deleted by the admin case.
    if codec != "none":
        records = read_all(broker.bootstrap, f"java-{release}-{codec}")
        assert digest((record.key(), record.value()) for record in records) == found["sha256"]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("case", ["acks-0", "acks-1"])
def test_fewer_acknowledgements(probe: RunProbe, release: str, case: str) -> None:
    """acks=1 answers with offsets, acks=0 with nothing at all, and the records are there."""
    assert "error" not in probe(release)[case], probe(release)[case]["error"]


@pytest.mark.parametrize("release", WITH_ADMIN)
def test_idempotent_producer(probe: RunProbe, release: str) -> None:
    """A producer with a producer id and sequences writes every record once and in order."""
    assert "error" not in probe(release)["idempotent"], probe(release)["idempotent"]["error"]


@pytest.mark.parametrize("release", RELEASES)
def test_records_of_another_client(probe: RunProbe, release: str) -> None:
    """Batches with headers that librdkafka compressed, down-converted where 0.10 needs it."""
    found = probe(release)["foreign"]
    assert "error" not in found, found["error"]
    assert found["records"] == len(FOREIGN)
    assert found["sha256"] == digest(FOREIGN)


@pytest.mark.parametrize("release", RELEASES)
def test_zstd_is_kept_from_clients_that_cannot_read_it(probe: RunProbe, release: str) -> None:
    """Clients from 2.1 on read zstd, older ones get an error instead of unreadable bytes."""
    found = probe(release)["foreign-zstd"]
    if java_probe.ERAS[release] == "v24":
        assert "error" not in found, found["error"]
        assert found["sha256"] == digest(FOREIGN)
    else:
        assert "records" not in found
        assert "error" in found


@pytest.mark.parametrize("release", WITH_ADMIN)
def test_admin_client(probe: RunProbe, release: str) -> None:
    """Create, list, describe, configure, delete topics; delete records; describe the cluster."""
    found = probe(release)["admin"]
    assert "error" not in found, found["error"]
    assert found["partitions"] == 3
    assert (found["retention"], found["retentionIsDefault"]) == ("123456", False)
    assert found["stillListed"] is False
    assert found["nodes"] == 1
    if java_probe.ERAS[release] == "v24":
        assert found["policy"] == "delete,compact"
        assert found["lowWatermark"] == 100
        assert found["clusterId"]
    else:
        assert found["policy"] == "delete"
