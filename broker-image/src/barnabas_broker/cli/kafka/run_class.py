"""`kafka-run-class`: a tool by the name of its Java class."""

from __future__ import annotations

import sys
from importlib import import_module

import click

TOOLS = "org.apache.kafka.tools"
# The module that takes the place of each class, under the names it had before and after Kafka 3.
CLASSES = {
    "kafka.tools.GetOffsetShell": "get_offsets",
    "kafka.tools.DumpLogSegments": "dump_log",
    "kafka.tools.ConsoleProducer": "console_producer",
    "kafka.tools.ConsoleConsumer": "console_consumer",
    "kafka.tools.ConsumerPerformance": "consumer_perf_test",
    "kafka.tools.ProducerPerformance": "producer_perf_test",
    "kafka.admin.TopicCommand": "topics",
    "kafka.admin.ConfigCommand": "configs",
    "kafka.admin.ConsumerGroupCommand": "consumer_groups",
    "kafka.admin.DeleteRecordsCommand": "delete_records",
    "kafka.admin.LogDirsCommand": "log_dirs",
    "kafka.admin.BrokerApiVersionsCommand": "broker_api_versions",
    "kafka.admin.ReassignPartitionsCommand": "reassign_partitions",
    "kafka.admin.LeaderElectionCommand": "leader_election",
    f"{TOOLS}.GetOffsetShell": "get_offsets",
    f"{TOOLS}.DumpLogSegments": "dump_log",
    f"{TOOLS}.ProducerPerformance": "producer_perf_test",
    f"{TOOLS}.ConsumerPerformance": "consumer_perf_test",
    f"{TOOLS}.TopicCommand": "topics",
    f"{TOOLS}.DeleteRecordsCommand": "delete_records",
    f"{TOOLS}.LogDirsCommand": "log_dirs",
    f"{TOOLS}.ConsoleProducer": "console_producer",
    f"{TOOLS}.consumer.ConsoleConsumer": "console_consumer",
    f"{TOOLS}.consumer.group.ConsumerGroupCommand": "consumer_groups",
    f"{TOOLS}.TransactionsCommand": "transactions",
    "kafka.admin.DelegationTokenCommand": "delegation_tokens",
    f"{TOOLS}.DelegationTokenCommand": "delegation_tokens",
    f"{TOOLS}.reassign.ReassignPartitionsCommand": "reassign_partitions",
    f"{TOOLS}.LeaderElectionCommand": "leader_election",
    f"{TOOLS}.ClusterTool": "cluster",
    f"{TOOLS}.VerifiableProducer": "verifiable_producer",
    f"{TOOLS}.VerifiableConsumer": "verifiable_consumer",
    "kafka.Kafka": "server_start",
}


def main() -> None:
    """Run the tool of the class named first; exit code 1 where there is none."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["-daemon"]:
        arguments = [*arguments[1:2], "-daemon", *arguments[2:]]
    if not arguments or arguments[0] not in CLASSES:
        named = f"{arguments[0]} is not supported" if arguments else "a class is needed"
        click.echo(f"Error: {named}; there are:\n  " + "\n  ".join(CLASSES), err=True)
        sys.exit(1)
    module = import_module(f"barnabas_broker.cli.kafka.{CLASSES[arguments[0]]}")
    module.main.main(args=arguments[1:], prog_name=f"kafka-run-class {arguments[0]}")
