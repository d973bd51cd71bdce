"""The credentials and TLS of tools for ZooKeeper: from the settings of a broker (ADR 9)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from barnabas_broker.cli.errors import InputError

if TYPE_CHECKING:
    from barnabas_broker.zk.credentials import Credentials
    from barnabas_kafka.settings.broker import BrokerSettings

OPTION: Final = "--zk-tls-config-file"
# A broker's file has much that is no tool's business, and may ask for ACLs on what it writes.
TAKEN: Final = ("zookeeper.ssl.", "zookeeper.clientCnxnSocket", "barnabas.zookeeper.")

config_option = click.option(
    OPTION,
    "zookeeper_config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="zookeeper.ssl.* and who one is, as in a server.properties; the rest is passed over.",
)


def tool_credentials(file: Path | None) -> Credentials:
    """What a tool shows to ZooKeeper: by the properties file, and by KAFKA_OPTS as a broker.

    Raises InputError, in one line, for what cannot be read or is not offered.
    """
    return _credentials(file)[0]


def writer_credentials(file: Path | None) -> Credentials:
    """The same for a tool that writes: an authenticated client owns what it creates.

    As in Kafka's tools; then only the tool's principal reads a password. Raises InputError.
    """
    found, settings = _credentials(file)
    certificate = settings.given("zookeeper.ssl.keystore.location")
    known = found.login is not None or found.digest is not None
    return replace(found, set_acl=known or (found.tls is not None and certificate))


def _credentials(file: Path | None) -> tuple[Credentials, BrokerSettings]:
    from barnabas_broker.cli.broker import given_settings
    from barnabas_broker.server.control.zookeeper_security import credentials
    from barnabas_broker.server.process.startup import StartupError
    from barnabas_kafka.settings.broker import BrokerSettings
    from barnabas_kafka.settings.definitions import SettingError

    zookeeper_settings = {
        name: value for name, value in given_settings(file, ()).items() if _taken(name)
    }
    try:
        settings = BrokerSettings.from_mapping(zookeeper_settings)
        return credentials(settings, os.environ), settings
    except (SettingError, StartupError) as error:
        raise InputError(str(error)) from None


def _taken(name: str) -> bool:
    return name.startswith(TAKEN)
