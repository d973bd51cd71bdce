"""The Secret of a user: name, password, and ready-made properties of the common clients.

username, password, bootstrap.servers, security.protocol, sasl.mechanism, sasl.jaas.config
client.properties      Java clients and Kafka's tools
librdkafka.json        librdkafka, a JSON object
librdkafka.properties  librdkafka; `kcat -F`; other files by their names below MOUNT_PATH
ca.crt                 with TLS: the certificates to trust, PEM; none where the listener's are
                       trusted by the clients' systems
spark.json             options of Spark's source and sink, a JSON object
url                    user and password in an address, percent-encoded
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

from barnabas_operator.api.reading import Metadata
from barnabas_operator.api.users import GENERATED, ROTATE
from barnabas_operator.names import labels
from barnabas_operator.resources.certificates import TRUSTED
from barnabas_operator.resources.config import property_value
from barnabas_operator.resources.objects import Document, document, owner_reference

COMPONENT: Final = "user"
KIND: Final = "KafkaUser"
# Where the Secret is mounted, for settings that name files: librdkafka's lines hold no PEM.
MOUNT_PATH: Final = "/etc/kafka-user"
LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


def user_secret(
    owner: Metadata,
    *,
    cluster: str,
    username: str,
    password: str,
    bootstrap_servers: str,
    security_protocol: str,
    mechanism: str,
    rotation: str = "",
    generated: str = "",
    trusted: str = "",
) -> Document:
    """The Secret of a user; it has no hash of its content, which would be one of the password."""
    body = document("v1", "Secret", owner.name, owner=owner, labels=labels(cluster, COMPONENT))
    body["type"] = "Opaque"
    notes = {ROTATE: rotation, GENERATED: generated}
    if any(notes.values()):
        body["metadata"]["annotations"] = {name: text for name, text in notes.items() if text}
    body["metadata"]["ownerReferences"] = [owner_reference(owner, KIND)]
    data = client_properties(
        username=username,
        password=password,
        bootstrap_servers=bootstrap_servers,
        security_protocol=security_protocol,
        mechanism=mechanism,
        trusted=trusted,
    )
    body["data"] = {key: b64encode(text.encode()).decode() for key, text in data.items()}
    return body


def client_properties(
    *,
    username: str,
    password: str,
    bootstrap_servers: str,
    security_protocol: str,
    mechanism: str,
    trusted: str = "",
    mount_path: str = MOUNT_PATH,
) -> dict[str, str]:
    """The keys of the Secret and their texts; `trusted` are certificates, PEM, with TLS.

    `mount_path` is where the keys are files.
    """
    jaas = f'{LOGIN_MODULE} required username="{username}" password="{_jaas(password)}";'
    java = {
        "bootstrap.servers": bootstrap_servers,
        "security.protocol": security_protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas,
    }
    librdkafka = {
        "bootstrap.servers": bootstrap_servers,
        "security.protocol": security_protocol,
        "sasl.mechanism": mechanism,
        "sasl.username": username,
        "sasl.password": password,
    }
    query = {"security.protocol": security_protocol, "sasl.mechanism": mechanism}
    files, single = dict(librdkafka), dict(java)
    if trusted:
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}
        files["ssl.ca.location"] = f"{mount_path}/{TRUSTED}"
        librdkafka["ssl.ca.pem"] = query["ssl.ca.pem"] = trusted
    login = f"{quote(username, safe='')}:{quote(password, safe='')}"
    return {
        "username": username,
        "password": password,
        **single,
        **({TRUSTED: trusted} if trusted else {}),
        "client.properties": lines(java, escaped=True),
        "librdkafka.properties": lines(files, escaped=False),
        "librdkafka.json": json.dumps(librdkafka),
        "spark.json": json.dumps({f"kafka.{key}": text for key, text in java.items()}),
        "url": f"kafka://{login}@{bootstrap_servers}?{urlencode(query)}",
    }


def lines(settings: Mapping[str, str], *, escaped: bool) -> str:
    """A setting a line; escaped as Java's properties are."""
    return "".join(
        f"{name}={property_value(text) if escaped else text}\n" for name, text in settings.items()
    )


def _jaas(text: str) -> str:
    """Within the quotes of a JAAS option, as java.io.StreamTokenizer reads it."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
