"""Apache Kafka and Barnabas are asked the same, and answer the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from tests.clients.brokers import Barnabas
from tests.oracle import (
    questions_about_acls,
    questions_about_groups,
    questions_about_internal_topics,
    questions_about_moves,
    questions_about_quotas,
    questions_about_records,
    questions_about_scram_users,
    questions_about_topics,
    questions_about_transactions,
    questions_about_versions,
    questions_about_words,
)
from tests.oracle.apache import ApacheKafka
from tests.oracle.sides import Side, accidents, differences, no_longer_different

pytestmark = pytest.mark.jvm

QUESTIONS: Final = (
    *questions_about_internal_topics.QUESTIONS,  # First: they ask before there are such topics.
    *questions_about_acls.QUESTIONS,
    *questions_about_groups.QUESTIONS,
    *questions_about_moves.QUESTIONS,
    *questions_about_quotas.QUESTIONS,
    *questions_about_records.QUESTIONS,
    *questions_about_scram_users.QUESTIONS,
    *questions_about_topics.QUESTIONS,
    *questions_about_transactions.QUESTIONS,
    *questions_about_versions.QUESTIONS,
    *questions_about_words.QUESTIONS,
)

CRASH: Final = (
    "Apache stumbles (an unknown server error, or no answer at all); we say what is wrong"
)
STRICTER: Final = "would be stored as it is, and readers would stumble over it"
ONCE: Final = "one description, however often a group is named: else no memory holds them all"
EACH_NAMED: Final = "one answer for each time that a partition is named"
NAME_FIRST: Final = "the name is judged first, as both do when they describe"

KEPT: Final = "retention would delete what the coordinator knows: these topics stay compacted"

#: Answers that differ on purpose: by question, what the difference looks like and why it is.
DELIBERATE: Final[dict[str, dict[str, str]]] = {
    "internal_topics_by_hand": {".*, (no settings|deleted|both|no policy|another setting).": KEPT},
    "produce_as_admin_client": {
        "answer.": "any client may take that id: nobody writes in the place of the coordinators",
    },
    "alter_internal_topics": {
        ".*, (set to (delete|both)|delete added|compact subtracted|policy deleted).": KEPT,
        ".*, policy (replaced|left out).": KEPT,
    },
    "produce_where": {"no partitions": "an answer for each topic asked about, however little"},
    "produce_contents": {
        "(codec [57]|plain called|compressed offset deltas).*(error_code|record_errors)": CRASH,
        "null, version .*no answer": CRASH,
        "append time, ": "the time is the broker's to set: Apache ignores the claim",
        "offset deltas (the same|backwards), ": STRICTER,
    },
    "produce_old_contents": {
        "null, version .*no answer": CRASH,
        "empty, version": "nothing to append is an error in every version here",
    },
    "fetch_limits": {"(partition )?limit -1": CRASH},
    "fetch_by_id": {"no id in a session": CRASH},
    "create_topics": {
        "named twice in a request": "one answer for each name",
    },
    "create_assigned_topics": {
        "assigned, negative": CRASH,
        "assigned, (a partition twice|(one|a) broker that is not there|no brokers)": (
            "Apache with ZooKeeper makes a topic that cannot work; with KRaft it refuses as we do"
        ),
    },
    "create_topics_with_settings": {
        "settings old name": "we show the value that the old name gives the new one",
    },
    "delete_topics": {"by nothing": "a request that names nothing is malformed, not forbidden"},
    "create_partitions": {"'' to 3": CRASH},
    "throttles": {
        r".*\.documentation: Apache None": "we say what the rates are",
    },
    "elections": {"no type of election": CRASH},
    "joining_groups": {
        "fresh, described.*group_state": "a group that only refused requests named takes no memory",
    },
    "metadata": {
        "(known|unknown|no) id, name .* version 1[01]": "we tell the brokers beside the error",
        "no id, name None, version 12": CRASH,
    },
    "describe_configs": {".* version 0.*is_default": "Apache no longer fills this in, we do"},
    "describe_whole_broker": {
        "(listeners|log.dirs|zookeeper.connect).": "each broker has its own",
    },
    "alter_configs_of_topics": {
        "a resource twice.*no answer": CRASH,
        "topic 'not a name'": NAME_FIRST,
    },
    "commits": {
        "no group, version 0": CRASH,
        "no partitions": "an answer for each topic asked about, however little",
        "twice": EACH_NAMED,
    },
    "descriptions": {"all, one of them twice": ONCE},
    "fetches_of_offsets": {
        "no group, version 0": CRASH,
        "twice, version 0": EACH_NAMED,
        "several": ONCE,
    },
    "fencing_of_producers": {
        "(first bumps, version|second (after|commits)).*": (
            "Apache aborts the transaction of the successor before it looks at the epoch of the"
            " one that was fenced; we refuse that one and leave the successor alone"
        ),
    },
    "offered_apis": {
        "(LEADER_AND_ISR|STOP_REPLICA|UPDATE_METADATA|CONTROLLED_SHUTDOWN|ALTER_PARTITION):": (
            "brokers of a cluster offer them to each other; this one is alone"
        ),
        "(ENVELOPE|ALLOCATE_PRODUCER_IDS):": "only Apache's brokers send them to their controller",
        "ALTER_PARTITION_REASSIGNMENTS": "version 1 is KIP-860, of a later release",
        "CONSUMER_GROUP_(HEARTBEAT|DESCRIBE):": (
            "Apache's brokers of that release refuse them with ZooKeeper; ours do not offer them in"
            " that protocol version"
        ),
        "DESCRIBE_TOPIC_PARTITIONS": "KIP-966, in Kafka of brokers without ZooKeeper",
    },
    "alter_single_configs_of_topics": {
        "unknown (added|operation)": CRASH,
        "topic 'not a name'": NAME_FIRST,
    },
}

#: Few partitions to create, and timeouts that are looked for often.
SETTINGS: Final = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    # What Apache of that release lacks is compared with a later one.
    "inter.broker.protocol.version": "3.9",
    # The longest that ZooKeeper grants: a session that ended would show in epochs of leaders.
    "zookeeper.session.timeout.ms": "40000",
}

#: Of each broker its own.
OWN_SETTINGS: Final = ("listeners", "log.dirs", "zookeeper.connect")


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Apache's broker and ours, with the same settings."""
    directory = tmp_path_factory.mktemp("apache")
    with ApacheKafka(directory=directory, heap="512M", overrides=SETTINGS) as apache:
        same = {name: v for name, v in apache.settings.items() if name not in OWN_SETTINGS}
        with Barnabas(tmp_path_factory.mktemp("barnabas"), same) as barnabas:
            yield Side(apache.bootstrap, stumbles=True), Side(barnabas.bootstrap)


def _answers(side: Side, question: Callable[[Side], None]) -> dict[str, Any]:
    try:
        question(side)
        return side.reported
    finally:
        side.close()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_answers_are_the_same(sides: tuple[Side, Side], question: Callable[[Side], None]) -> None:
    """Every answer is Apache's, but for those that differ on purpose, and these do differ."""
    apache, ours = (_answers(side, question) for side in sides)
    found = list(differences(apache, ours))
    purposes = DELIBERATE.get(question.__name__, {})
    unexpected = accidents(found, purposes)
    assert not unexpected, "\n".join(["", *unexpected])
    assert not no_longer_different(found, purposes)
