"""The addresses that a broker advertises."""

import socket
from collections.abc import Mapping

from barnabas_broker.cluster.image import Endpoint
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.listeners import Listener

WILDCARDS = ("", "0.0.0.0", "::")  # noqa: S104 - recognised, not bound


def advertised_endpoints(
    settings: BrokerSettings, bound_ports: Mapping[str, int]
) -> tuple[Endpoint, ...]:
    """The advertised address of each listener, by `advertised.listeners` or `listeners`.

    A host left empty is this machine's own name, and port 0 the port that was really bound.
    """
    return tuple(
        Endpoint(
            listener.name,
            machine_name() if listener.host in WILDCARDS else listener.host,
            listener.port or bound_ports[listener.name],
            listener.protocol.name,
        )
        for listener in _advertised(settings)
    )


def _advertised(settings: BrokerSettings) -> tuple[Listener, ...]:
    return settings.advertised_listeners or settings.listeners


def machine_name() -> str:
    """This machine's name if it can be looked up here, else `localhost`.

    A name that does not even resolve on the machine that bears it would send every client astray.
    """
    name = socket.getfqdn()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name
