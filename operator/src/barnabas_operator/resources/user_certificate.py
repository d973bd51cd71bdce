"""The Secret of a user with a client certificate: the pair, and properties of the common clients.

user.crt, user.key, ca.crt    PEM: the certificate, its key, and the certificates to trust (none
                              where the listener's are trusted by the clients' systems)
user.p12, user.password       certificate and key as PKCS#12, and its password
client.properties, librdkafka.json, librdkafka.properties, spark.json, url
                              as in the Secret of a user with a password
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from barnabas_operator.api.reading import Metadata
from barnabas_operator.api.users import ROTATE
from barnabas_operator.names import labels
from barnabas_operator.resources.certificates import TRUSTED
from barnabas_operator.resources.objects import Document, document, owner_reference
from barnabas_operator.resources.user_secret import COMPONENT, KIND, MOUNT_PATH, lines

USER_CERTIFICATE: Final = "user.crt"
USER_KEY: Final = "user.key"
USER_STORE: Final = "user.p12"
STORE_PASSWORD: Final = "user.password"  # noqa: S105 - the name of a key


def user_certificate_secret(
    owner: Metadata, *, cluster: str, data: Mapping[str, bytes], rotation: str = ""
) -> Document:
    """The Secret of such a user; it has no hash of its content, which would be one of the key."""
    body = document("v1", "Secret", owner.name, owner=owner, labels=labels(cluster, COMPONENT))
    body["type"] = "Opaque"
    if rotation:
        body["metadata"]["annotations"] = {ROTATE: rotation}
    body["metadata"]["ownerReferences"] = [owner_reference(owner, KIND)]
    body["data"] = {key: b64encode(value).decode() for key, value in data.items()}
    return body


def certificate_properties(
    *,
    username: str,
    certificate: str,
    key: str,
    trusted: str,
    bootstrap_servers: str,
    mount_path: str = MOUNT_PATH,
) -> dict[str, str]:
    """The keys of the Secret but for PKCS#12, and their texts; `mount_path` has them as files.

    Without `trusted` clients trust what their systems do.
    """
    plain = {"bootstrap.servers": bootstrap_servers, "security.protocol": "SSL"}
    java = {
        **plain,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": certificate,
        "ssl.keystore.key": key,
    }
    inline = {"ssl.certificate.pem": certificate, "ssl.key.pem": key}
    files = {
        **plain,
        "ssl.certificate.location": f"{mount_path}/{USER_CERTIFICATE}",
        "ssl.key.location": f"{mount_path}/{USER_KEY}",
    }
    if trusted:
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}
        inline["ssl.ca.pem"] = trusted
        files["ssl.ca.location"] = f"{mount_path}/{TRUSTED}"
    query = {"security.protocol": "SSL", **inline}
    return {
        "username": username,
        **plain,
        **({TRUSTED: trusted} if trusted else {}),
        USER_CERTIFICATE: certificate,
        USER_KEY: key,
        "client.properties": lines(java, escaped=True),
        "librdkafka.json": json.dumps({**plain, **inline}),
        "librdkafka.properties": lines(files, escaped=False),
        "spark.json": json.dumps({f"kafka.{name}": text for name, text in java.items()}),
        "url": f"kafka://{bootstrap_servers}?{urlencode(query)}",
    }
