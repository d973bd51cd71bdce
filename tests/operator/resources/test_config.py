"""The text files: what is rendered is read back as what was meant."""

from __future__ import annotations

import jinja2
import pytest

from barnabas_kafka.settings.properties import parse_properties
from barnabas_operator.api.authentication import AuthenticationType
from barnabas_operator.api.listeners import Listener, ListenerAuthentication, ListenerType
from barnabas_operator.api.reading import read_cluster
from barnabas_operator.resources import config
from barnabas_operator.resources.config import (
    EnsembleMember,
    inter_broker_listener,
    server_properties,
    zoo_cfg,
)
from tests.operator import examples

PLAIN = Listener(name="plain", port=9092)
OUTSIDE = Listener(name="outside", type=ListenerType.NODEPORT, port=9094)


def test_settings_survive_the_file() -> None:
    """Values with backslashes, line ends, leading spaces and equals signs come out as given."""
    settings = {"a": r"C:\dir", "b": "two\nlines", "c": " led", "d": "x=y", "e f": "!", "g": "ü"}
    text = server_properties("c", listeners=[PLAIN], config=settings, zookeeper_connect="z:2181/c")
    read = parse_properties(text.encode(), origin="server.properties")
    assert {name: read[name] for name in settings} == settings
    assert read["zookeeper.connect"] == "z:2181/c"


def test_without_zookeeper_the_broker_keeps_its_data() -> None:
    """`local` may run without an ensemble: then no address of one is in the file."""
    text = server_properties("c", listeners=[PLAIN], config={}, zookeeper_connect=None)
    assert "zookeeper" not in text


def test_brokers_speak_on_the_first_internal_listener() -> None:
    """An outside listener is never used among brokers; without an internal one it is an error."""
    assert inter_broker_listener([OUTSIDE, PLAIN]) is PLAIN
    with pytest.raises(ValueError, match="type internal"):
        inter_broker_listener([OUTSIDE])


def test_listeners_with_authentication_offer_their_mechanism() -> None:
    """Brokers and operator use the listener without."""
    scram = Listener(
        name="scram",
        port=9095,
        authentication=ListenerAuthentication(type=AuthenticationType.SHA_256),
    )
    text = server_properties("c", listeners=[scram, PLAIN], config={}, zookeeper_connect=None)
    read = parse_properties(text.encode(), origin="server.properties")
    assert read["listener.security.protocol.map"] == "SCRAM:SASL_PLAINTEXT,PLAIN:PLAINTEXT"
    assert read["listener.name.scram.sasl.enabled.mechanisms"] == "SCRAM-SHA-256"
    assert read["inter.broker.listener.name"] == "PLAIN"
    with pytest.raises(ValueError, match="without authentication"):
        inter_broker_listener([scram])


def test_authorization_makes_brokers_and_operator_super_users() -> None:
    """They have no name on the listener without authentication."""
    spec = read_cluster(examples.secured(authorization={"superUsers": ["admin"]})).body.spec
    assert spec.broker_config["super.users"] == "User:ANONYMOUS;User:admin"
    assert spec.broker_config["authorizer.class.name"].endswith("AclAuthorizer")
    assert "super.users" not in read_cluster(examples.cluster()).body.spec.broker_config


def test_zoo_cfg_has_the_settings_of_the_notes() -> None:
    """Two seconds a tick, five ticks to join and to follow."""
    members = [EnsembleMember(host=host) for host in "abc"]
    lines = zoo_cfg("c", members=members).splitlines()
    assert {"tickTime=2000", "initLimit=5", "syncLimit=2", "server.2=b:2888:3888"} <= set(lines)


def test_members_on_one_host_differ_in_their_ports() -> None:
    """Nothing listens beyond the address that is given."""
    members = [
        EnsembleMember(host="127.0.0.1", peer_port=2887 + n, election_port=3887 + n)
        for n in (1, 2, 3)
    ]
    text = zoo_cfg("c", members=members, client_port=2182, client_address="127.0.0.1")
    assert {"clientPort=2182", "clientPortAddress=127.0.0.1", "server.3=127.0.0.1:2890:3890"} <= {
        *text.splitlines()
    }
    assert "quorumListenOnAllIPs" not in text


def test_a_template_without_its_value_is_an_error() -> None:
    """A name that nobody gives is never an empty line."""
    with pytest.raises(jinja2.UndefinedError):
        config._render("zoo.cfg.j2", cluster="c")
