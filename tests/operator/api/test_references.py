"""The rule of fields that stay as they were created; test_schemas.py has the definitions."""

from __future__ import annotations

from barnabas_operator.api.declarations import fields_of, rules_of
from barnabas_operator.api.pipelines import PipelineSpec
from barnabas_operator.api.references import SAME_CLUSTER, unchangeable
from barnabas_operator.api.topics import TopicSpec
from barnabas_operator.api.users import UserSpec


def test_an_unchangeable_field_may_neither_change_nor_come_nor_go() -> None:
    """In CEL, an absent field may not be read: presence is compared first."""
    rule = unchangeable("topicName", "Kafka cannot rename a topic")
    assert rule.expression == (
        "has(self.topicName) == has(oldSelf.topicName)"
        " && (!has(self.topicName) || self.topicName == oldSelf.topicName)"
    )
    assert rule.message == "topicName may not change: Kafka cannot rename a topic"


def test_topics_and_users_name_their_cluster_alike() -> None:
    """With one definition, which the API server checks; pipelines have no other namespace."""
    for spec in (TopicSpec, UserSpec):
        assert {SAME_CLUSTER, unchangeable("clusterNamespace")} <= set(rules_of(spec))
    assert SAME_CLUSTER in rules_of(PipelineSpec)
    of_topics, of_users = (
        {each.name: each.facts for each in fields_of(spec)} for spec in (TopicSpec, UserSpec)
    )
    for name in ("cluster", "clusterNamespace"):
        assert of_topics[name] == of_users[name]
