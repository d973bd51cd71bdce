"""As whom tools come to ZooKeeper, and how protected: by what a broker is told it with (ADR 9)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from barnabas_broker.cli.errors import InputError

if TYPE_CHECKING:
    from barnabas_broker.zk.credentials import Credentials

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
    from barnabas_broker.cli.broker import given_settings
    from barnabas_broker.server.startup import StartupError
    from barnabas_broker.server.zookeeper_security import credentials
    from barnabas_kafka.settings.broker import BrokerSettings
    from barnabas_kafka.settings.definitions import SettingError

    told = {name: value for name, value in given_settings(file, ()).items() if _taken(name)}
    try:
        return credentials(BrokerSettings.from_mapping(told), os.environ)
    except (SettingError, StartupError) as error:
        raise InputError(str(error)) from None


def _taken(name: str) -> bool:
    return name.startswith(TAKEN)
