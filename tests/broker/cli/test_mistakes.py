"""Mistakes that people make, each with the message, through the command as it is installed.

A row is a command line and what it says on standard error: the exit code is 2 where nothing was
tried, else 1, and it comes at once, without a traceback.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas_broker.testing import Broker
from tests.waiting import RUN, seconds

BIN = Path(sys.executable).parent

MISTAKES = [
    # Words that are mistyped, or not there.
    (2, "barnabas toipcs", "No such command 'toipcs'. Did you mean 'topics'?"),
    (2, "barnabas up cluster.yaml", "No such command 'up'. Did you mean 'local up'?"),
    (2, "barnabas topics lst", "No such command 'lst'. Did you mean 'list'?"),
    (2, "barnabas broker list", "Did you mean 'barnabas brokers list'?"),
    (2, "barnabas help toipcs", "No such command 'toipcs'. Did you mean 'topics'?"),
    (2, "barnabas topics list -o xml", "'xml' is not one of 'table', 'json', 'yaml'"),
    (2, "barnabas consume {topic} --from-begining", "Did you mean '--from-beginning'?"),
    (2, "barnabas consume {topic} --max-messages 0", "0 is not in the range x>=1"),
    (2, "barnabas produce {topic} hello", "Got unexpected extra argument (hello)"),
    (2, "barnabas produce {topic} --acks 2", "'2' is not one of 'all', '-1', '0', '1'"),
    (2, "barnabas topics create", "Missing argument 'TOPIC...'."),
    (2, "barnabas topics create t --partition 3", "No such option '--partition'. Did you mean"),
    (2, "barnabas topics create t --partitions many", "'many' is not a valid integer"),
    (2, "barnabas topics create t --partitions -1", "-1 is not in the range 1<=x<=2147483647"),
    (2, "barnabas topics create t --partitions 99999999999", "is not in the range 1<=x<="),
    (2, "barnabas topics alter {topic} --partitions 0", "0 is not in the range 1<=x<="),
    (2, "barnabas topics create t --replication-factor 99999", "is not in the range 1<=x<=32767"),
    (2, "barnabas offsets {topic} --time 99999999999999999999", "a number is too large for the"),
    (2, "barnabas consume {topic} --group= --until-end", "the group (group.id) is empty"),
    (2, "barnabas topics list --output xml", "'xml' is not one of 'table', 'json', 'yaml'"),
    # Addresses.
    (2, "barnabas topics list -b localhost:99999", "port 99999 is not between 1 and 65535"),
    (2, "barnabas topics list -b localhost:", "'localhost:' is not a host:port"),
    (2, "barnabas topics list -b http://{broker}", "http is no protocol of Kafka's; give"),
    (2, "barnabas topics list -b ,", "'' is not a host:port"),
    (1, "barnabas topics list -b 127.0.0.1:1", "cannot reach a broker at 127.0.0.1:1: Connection"),
    (1, "barnabas topics list -b no.such.host.invalid:9092", "cannot reach a broker at no.such"),
    (1, "barnabas topics list -b a..b:9092", "at a..b:9092: a..b is not a valid host name"),
    (1, "barnabas broker ready --bootstrap-server a..b:9092", "not ready: a..b:9092: "),
    (2, "barnabas topics list -X security.protocol", "-X takes NAME=VALUE"),
    (2, "barnabas topics list -X no.such.property=1", "the client configuration is refused: "),
    (2, "barnabas topics list --command-config /no/such/file", "'/no/such/file' does not exist"),
    # Topics, partitions, brokers and groups that are not there.
    (1, "barnabas topics describe nothing", "UNKNOWN_TOPIC_OR_PART"),
    (1, "barnabas topics delete nothing", "UNKNOWN_TOPIC_OR_PART"),
    (1, "barnabas topics create bad/name", "Topic name is invalid"),
    (1, "barnabas topics create t --replication-factor 9", "INVALID_REPLICATION_FACTOR"),
    (1, "barnabas topics create t --config retention.hours=1", "INVALID_CONFIG"),
    (1, "barnabas consume nothing", "cannot read nothing: "),
    (1, "barnabas consume {topic}x", "Unknown topic or partition (UNKNOWN_TOPIC_OR_PART); did you"),
    (1, "barnabas offsets {topic}x", "there is no topic {topic}x; did you mean {topic}"),
    (1, "barnabas consume {topic} --partition 9", "topic {topic} has no partition 9"),
    (1, "barnabas offsets nothing", "there is no topic nothing"),
    (1, "barnabas groups describe nothing", "there is no group nothing"),
    (1, "barnabas configs describe --entity-type brokers --entity-name 77", "no broker 77"),
    (2, "barnabas configs describe --entity-type brokers --entity-name x", "its id, a number"),
    (1, "barnabas log-dirs describe --broker 77", "there is no broker 77"),
    (1, "barnabas elect-leaders {topic}:99", "topic {topic} has no partition 99"),
    (1, "barnabas transactions describe nothing", "no broker coordinates nothing"),
    (1, "barnabas consume {topic} --offset 99 --until-end", "{topic}-0 has offsets 0 to 0, not 99"),
    (1, "barnabas brokers describe 77", "there is no broker 77"),
    # Settings.
    (2, "barnabas topics create t --config retention.ms", "--config takes NAME=VALUE, not 'ret"),
    (1, "barnabas topics create t --config retention.ms=7d", "retention.ms=7d: must be a whole"),
    (1, "barnabas topics alter {topic} --delete-config retention.hour", "not a setting of topics"),
    (1, "barnabas configs alter --entity-type topics --entity-name {topic} --delete retention.mss",
     "retention.mss: not a setting of topics; did you mean retention.ms"),
    (1, "barnabas configs alter --entity-type brokers --entity-name 0 --delete log.retention.mss",
     "there is no broker 0, or it does not run"),
    # Options that do not go together, or say nothing.
    (2, "barnabas consume {topic} --format %z", "--format: there is no %z; there are %s"),
    (2, "barnabas consume {topic} --format %s --output json", "leave out --output"),
    (2, "barnabas consume {topic} --group g --partition 0", "the group says who reads which"),
    (2, "barnabas consume {topic} --print colour", "--print colour: a record has timestamp"),
    (2, "barnabas consume {topic} --offset soon", "--offset soon: not a number, earliest, latest"),
    (2, "barnabas configs alter --entity-type topics --entity-name t", "nothing to alter"),
    (2, "barnabas elect-leaders", "say which partitions: TOPIC[:PARTITIONS], --all or --file"),
    (2, "barnabas produce {topic} --property parse.keys=true", "--property parse.keys is not"),
    (2, "barnabas topics list --timeout nan", "'nan' is not a number of seconds"),
    (2, "barnabas topics list --timeout 999999999999", "is not in the range 0<x<=3600"),
    (2, "barnabas consume {topic} --idle-timeout inf", "is not in the range 0<x<=86400"),
    # Files.
    (2, "barnabas reassign execute {empty}", "partitions: it names no partition"),
    (2, "barnabas reassign execute {wrong}", "partitions[0].replica: there is no such field; did"),
    (2, "barnabas reassign execute {wrong}", "partitions[1]: partition t-0 is there twice"),
    (2, "barnabas broker start --config /no/such.properties", "cannot read /no/such.properties"),
    (2, "barnabas broker start --set num.partitions=many", "num.partitions=many: "),
    (2, "barnabas broker start --strict --set log.retention.hour=1", "log.retention.hours"),
    (2, "barnabas produce {topic} --file /no/such", "File '/no/such' does not exist"),
    (2, "barnabas produce {topic} --file /", "File '/' is a directory"),
    (2, "barnabas dump-log /etc/passwd", "/etc/passwd is none of .log, .index"),
    (2, "barnabas reassign verify /etc/passwd", "line 1, column 1: it is no JSON"),
    (2, "barnabas local up https://example.com/cluster.yaml", "does not exist"),
    # Kafka's own names.
    (1, "kafka-topics --list", "Missing option '--bootstrap-server'"),
    (1, "kafka-topics --bootstrap-server {broker} --list --create", "exactly one action"),
    (1, "kafka-reassign-partitions --bootstrap-server {broker} --execute --broker-list 1",
     "Option \"[broker-list]\" can't be used with action \"[execute]\""),
    (1, "kafka-leader-election --bootstrap-server {broker} --election-type preferred",
     "One and only one of the following options is required: topic, all-topic-partitions"),
    (1, "kafka-metadata-quorum --bootstrap-server {broker} describe", "barnabas zk status"),
    (1, "kafka-storage.sh format -t x -c a.properties", "start the broker with kafka-server-start"),
    (1, "kafka-features --bootstrap-server {broker} describe", "inter.broker.protocol.version"),
    (1, "zookeeper-shell.sh {broker} ls /brokers/ids", "barnabas zk ls PATH -z HOST:PORT"),
    (1, "kafka-console-consumer --bootstrap-server {broker} --topic t --partition 0 --offset {big}",
     "a number is too large for the protocol"),
    (1, "kafka-verifiable-consumer --bootstrap-server {broker} --topic t --group-id=",
     "the group (group.id) is empty"),
    (1, "kafka-cluster unregister --bootstrap-server {broker} --id 1", "nothing to unregister"),
    (1, "kafka-console-consumer --bootstrap-server {broker}", "Exactly one of --topic and"),
]  # fmt: skip

EMPTY = '{"version": 1, "partitions": []}'
WRONG = (
    '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "replica": [2]},'
    ' {"topic": "t", "partition": 0, "replicas": [1]}]}'
)


@pytest.mark.parametrize(("code", "typed", "reported"), MISTAKES)
def test_a_mistake_is_reported_with_its_correction(
    kafka_broker: Broker, kafka_topic: str, tmp_path: Path, code: int, typed: str, reported: str
) -> None:
    """What is wrong, and what would be right, in a line or two."""
    names = {"topic": kafka_topic, "broker": kafka_broker.bootstrap_servers, "big": "9" * 20}
    for name, text in {"empty": EMPTY, "wrong": WRONG}.items():
        path = tmp_path / f"{name}.json"
        path.write_text(text)
        names[name] = str(path)
    program, *words = typed.format(**names).split()
    environment = {**os.environ, "BARNABAS_BOOTSTRAP": kafka_broker.bootstrap_servers}
    done = subprocess.run(
        [BIN / program, *words], env=environment, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=seconds(RUN), check=False,
    )  # fmt: skip
    assert reported.format(**names) in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == code
