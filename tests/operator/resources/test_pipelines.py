"""A pipeline's objects: golden manifest, and the document that its pod reads."""

from __future__ import annotations

import yaml

from barnabas_operator.api.reading import read_pipeline
from barnabas_operator.resources.pipelines import pipeline_config, pipeline_objects
from tests.operator import examples
from tests.operator.resources.golden import compare


def test_objects_of_the_quickstart() -> None:
    """ConfigMap, Service and a StatefulSet of one."""
    made = pipeline_objects(
        read_pipeline(examples.pipeline()),
        image="barnabas-pipeline:1",
        bootstrap_servers="quickstart-bootstrap.default.svc:9092",
    )
    compare("pipeline", made)


def test_objects_of_a_pipeline_with_a_user() -> None:
    """The Secret of the KafkaUser as files; nothing of it in variables, arguments or hashes.

    The image comes from a registry that asks for a login.
    """
    secrets = [{"name": "registry"}]
    made = pipeline_objects(
        read_pipeline(examples.pipeline(user="archivist", imagePullSecrets=secrets)),
        image="barnabas-pipeline:1",
        bootstrap_servers="quickstart-bootstrap.default.svc:9092",
    )
    compare("pipeline-with-user", made)


def test_the_pod_is_not_given_what_the_operator_acts_on() -> None:
    """An image of another version need not know these fields."""
    acted_on = {"version": "0.1.0", "image": "mine:1", "imagePullSecrets": [{"name": "registry"}]}
    given = examples.pipeline(user="archivist", **acted_on)
    document = yaml.safe_load(pipeline_config(read_pipeline(given)))
    assert acted_on.keys().isdisjoint(document["spec"])
    assert document["spec"]["user"] == "archivist"


def test_the_pod_reads_a_pipeline_again() -> None:
    """What is mounted is a KafkaPipeline with all defaults, which reads as the same pipeline."""
    pipeline = read_pipeline(examples.pipeline())
    document = yaml.safe_load(pipeline_config(pipeline))
    assert document["spec"]["source"]["startingOffsets"] == "earliest"
    assert read_pipeline(document).body.spec == pipeline.body.spec
