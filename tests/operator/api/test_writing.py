"""Objects as JSON values."""

from __future__ import annotations

from barnabas_operator.api.reading import read_cluster, read_pipeline
from barnabas_operator.api.writing import to_json
from tests.operator import examples


def test_a_resource_is_written_with_its_defaults() -> None:
    """Fields that are None are left out; the rest is there."""
    written = to_json(read_cluster(examples.cluster()).body.spec)
    assert written["listeners"][0] == {"name": "plain", "type": "internal", "port": 9092}
    assert written["brokers"]["storage"] == {"size": "2Gi", "deletionPolicy": "Retain"}


def test_reading_what_was_written_changes_nothing() -> None:
    """There and back."""
    pipeline = read_pipeline(examples.pipeline())
    document = {**examples.pipeline(), "spec": to_json(pipeline.body.spec)}
    assert read_pipeline(document) == pipeline
