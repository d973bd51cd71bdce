"""`kafka-configs` of users, clients and addresses prints and sets what Apache's does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.brokers import Barnabas
from tests.oracle.test_tools import CONFIGS, ours, theirs

pytestmark = pytest.mark.jvm

BOTH = "--entity-type users --entity-name NAME --entity-type clients"
SWAPPED = "--entity-type clients --entity-default --entity-type users"
#: Commands in their order; NAME is each tool's own.
COMMANDS = [
    "--alter --entity-type users --entity-name NAME --add-config producer_byte_rate=1048576",
    "--alter --user NAME --add-config consumer_byte_rate=1e7,request_percentage=12.5",
    "--describe --entity-type users --entity-name NAME",
    "--describe --user NAME",
    f"--alter {BOTH} --entity-name app --add-config producer_byte_rate=0.0",
    f"--alter {SWAPPED} --entity-name NAME --add-config producer_byte_rate=99999999",
    "--describe --entity-type users --entity-name NAME --entity-type clients",
    "--describe --user NAME --client app",
    "--describe --user NAME --client-defaults",
    "--alter --entity-type clients --entity-name NAME --add-config controller_mutation_rate=0.5",
    "--describe --entity-type clients --entity-name NAME",
    "--alter --client-defaults --add-config request_percentage=200",
    "--describe --entity-type clients --entity-default",
    "--alter --entity-type clients --entity-default --delete-config request_percentage",
    "--describe --client-defaults",
    "--alter --user-defaults --add-config producer_byte_rate=5",
    "--describe --entity-type users --entity-default",
    "--alter --entity-type users --entity-default --delete-config producer_byte_rate",
    "--alter --ip 127.0.0.1 --add-config connection_creation_rate=1000",
    "--describe --entity-type ips --entity-name 127.0.0.1",
    "--alter --ip-defaults --add-config connection_creation_rate=1000000",
    "--describe --entity-type ips",
    "--alter --ip-defaults --delete-config connection_creation_rate",
    "--alter --user NAME --delete-config consumer_byte_rate",
    "--describe --user NAME",
]  # fmt: skip
REFUSED = [
    "--alter --user NAME --delete-config controller_mutation_rate",
    "--alter --user NAME --add-config no_such_quota=1",
    "--alter --user NAME --add-config connection_creation_rate=1",
    "--alter --client NAME --add-config SCRAM-SHA-256=[password=x]",
    "--alter --ip 127.0.0.1 --add-config producer_byte_rate=1",
    "--alter --user NAME --add-config producer_byte_rate=x",
    "--alter --user NAME --add-config producer_byte_rate=1.5",
    "--alter --user-defaults --add-config SCRAM-SHA-256=[password=x]",
    "--alter --user NAME --add-config SCRAM-SHA-256=[password=x],producer_byte_rate=1",
    "--alter --entity-type users --add-config producer_byte_rate=1",
    "--describe --entity-type topics --entity-type users",
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Barnabas]:
    """Ours, which both tools ask."""
    with Barnabas(tmp_path_factory.mktemp("broker"), {"broker.id": "0"}) as running:
        yield running


def run(broker: Barnabas, typed: str, *, apaches: bool) -> tuple[int, list[str], str]:
    """Exit code and lines, and what went to standard error."""
    name = "theirs" if apaches else "ours"
    words = ["kafka-configs", "--bootstrap-server", broker.bootstrap, *typed.split()]
    words = [word.replace("NAME", name) for word in words]
    done = theirs(CONFIGS, words) if apaches else ours(words)
    return done.code, sorted(done.out.replace(name, "NAME").splitlines()), done.err


def test_commands_print_the_same(broker: Barnabas) -> None:
    """Line by line, with the same exit code; each tool has set what the other one shows."""
    added = ""
    for typed in COMMANDS:
        code, lines, err = run(broker, typed, apaches=False)
        if "--add-config" in typed:
            added = typed
        elif "--delete-config" in typed and "NAME" not in typed:
            run(broker, added, apaches=False)  # It is the same that both are to remove.
        apache = run(broker, typed, apaches=True)
        # The order in which quotas of one entity are told is that of a hash table.
        assert [sorted(each.split(", ")) for each in lines] == [
            sorted(each.split(", ")) for each in apache[1]
        ], typed
        assert (code, apache[0]) == (0, 0), (typed, err, apache[2])


@pytest.mark.parametrize("typed", REFUSED)
def test_commands_are_refused_alike(broker: Barnabas, typed: str) -> None:
    """With exit code 1, and nothing is set."""
    codes = [run(broker, typed, apaches=each)[0] for each in (False, True)]
    assert codes == [1, 1]
