"""New ids: random, usable, and in Kafka's text form."""

from random import Random

from barnabas_broker.controller.identity import new_cluster_id, new_id
from barnabas_kafka.ids import uuid_from_base64, uuid_to_base64


def test_ids_are_random_uuids_that_no_command_line_takes_for_an_option() -> None:
    """Version 4, never with a leading dash, and different each time."""
    random = Random(1)
    ids = [new_id(random) for _ in range(500)]
    assert len(set(ids)) == 500
    assert {each.version for each in ids} == {4}
    assert not any(uuid_to_base64(each).startswith("-") for each in ids)


def test_the_same_randomness_gives_the_same_cluster_id() -> None:
    """Identity comes only from what is passed in, so that a simulation can be repeated."""
    assert new_cluster_id(Random(5)) == new_cluster_id(Random(5))
    assert uuid_from_base64(new_cluster_id(Random(5))).version == 4
