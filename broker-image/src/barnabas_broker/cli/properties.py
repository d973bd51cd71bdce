"""Client properties as people have them: Java's files, NAME=VALUE options.

librdkafka shares most names with the Java clients. The differences that a file made for Kafka's own
tools runs into are translated here; what only makes sense inside a JVM is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from barnabas_broker.cli.errors import InputError

RENAMED = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "request.timeout.ms": "socket.timeout.ms",
    "connections.max.idle.ms": "connections.max.idle.ms",
    "default.api.timeout.ms": "",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
}
# Names whose effect has no place in this client: class names, JVM stores, buffers it sizes itself.
LEFT_OUT = re.compile(
    r"(key|value)\.(de)?serializer|.*\.class(es)?|metric\.reporters|metrics\..*|auto\.include\..*"
    r"|ssl\.(truststore|keystore)\.type|ssl\.truststore\.password|ssl\.protocol"
    r"|ssl\.enabled\.protocols|ssl\.provider|buffer\.memory|max\.block\.ms|max\.poll\.records"
)
BEARER = "sasl.oauthbearer."
#: Options of Kafka's OAuthBearerLoginModule, as librdkafka calls them.
BEARER_OPTIONS = {
    "clientId": f"{BEARER}client.id",
    "clientSecret": f"{BEARER}client.secret",
    "scope": f"{BEARER}scope",
    "ssl.truststore.location": "https.ca.location",
}
BEARER_EXTENSIONS = f"{BEARER}extensions"
_BEARER_MODULE = "OAuthBearerLoginModule"
_EXTENSION = "extension_"
TOKEN_AUTH = "sasl.tokenauth"  # noqa: S105 - a name
"""Ours, for `tokenauth="true"` of a login line."""

# Comments, and texts in quotes that are none of these values, are passed over.
_CREDENTIAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/
      |\b(username|password|tokenauth)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')
      |"(?:[^"\\]|\\.)*"|'[^']*'""",
    re.VERBOSE | re.DOTALL,
)


def parse_assignments(assignments: Iterable[str], option: str) -> dict[str, str]:
    """`NAME=VALUE` options as a dict; the value may be empty and may contain `=`."""
    parsed = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{option} takes NAME=VALUE, not {assignment!r}")
        parsed[name.strip()] = value.strip()
    return parsed


def client_properties(path: Path) -> dict[str, str]:
    """A Java client properties file in librdkafka's terms."""
    import javaproperties

    try:
        loaded = javaproperties.loads(path.read_text(encoding="latin-1"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None
    return java_properties(loaded, f"{path}: ")


def java_properties(given: Mapping[str, str], origin: str) -> dict[str, str]:
    """Java client properties in librdkafka's terms; complaints begin with `origin`."""
    properties: dict[str, str] = {}
    if given.get("sasl.mechanism") == "OAUTHBEARER":
        _check_handler(given, origin)
    for name, value in given.items():
        if name == "sasl.jaas.config" and _BEARER_MODULE in value:
            properties |= _bearer(value, origin)
        elif name == "sasl.jaas.config":
            properties |= _credentials(value)
        elif name == "ssl.keystore.location":
            properties |= _key_pair(value)
        elif name == "ssl.truststore.location" and not value.endswith((".pem", ".crt", ".cer")):
            raise InputError(
                f"{origin}{value} is a Java keystore; give the certificates as PEM"
                " (ssl.ca.location, or ssl.truststore.location ending in .pem)"
            )
        elif not LEFT_OUT.fullmatch(name):
            properties[RENAMED.get(name, name)] = value
    properties.pop("", None)
    return properties


def _credentials(jaas: str) -> dict[str, str]:
    """User name and password out of a JAAS login line (PLAIN and SCRAM modules).

    `tokenauth` says that they are of a delegation token; librdkafka does not know such.
    """
    found = {
        name: re.sub(r"\\(.)", r"\1", double) if double else single
        for name, double, single in _CREDENTIAL.findall(jaas)
        if name
    }
    if found.pop("tokenauth", "false").lower() == "true":
        found["tokenauth"] = "true"
    return {f"sasl.{name}": value for name, value in found.items()}


def _check_handler(given: Mapping[str, str], origin: str) -> None:
    # Late, for few commands want it.
    from barnabas_broker.security.bearer_login import HANDLER, HANDLERS

    if given.get(HANDLER, HANDLERS[0]).strip() not in HANDLERS:
        raise InputError(f"{origin}{HANDLER}: classes are not loaded; known: {HANDLERS[0]}")


def _bearer(jaas: str, origin: str) -> dict[str, str]:
    """What tokens are given for, out of the login line of OAUTHBEARER (KIP-768)."""
    from barnabas_broker.security.jaas import JaasError, parse

    try:
        ((module,),) = parse(f"KafkaClient {{ {jaas}\n}};").values()
    except (JaasError, ValueError):
        raise InputError(f"{origin}sasl.jaas.config: it has to be one login module") from None
    options = {name: it for name, it in module.options.items() if it != ""}
    if options.get("ssl.truststore.type") == "PEM":
        del options["ssl.truststore.type"]
    extensions = {name: it for name, it in options.items() if name.startswith(_EXTENSION)}
    if unknown := sorted(options.keys() - extensions.keys() - BEARER_OPTIONS.keys()):
        raise InputError(
            f"{origin}sasl.jaas.config: the option {unknown[0]} is not supported; known: "
            f"{', '.join(BEARER_OPTIONS)} (PEM), {_EXTENSION}<name>"
        )
    if any("," in value for value in extensions.values()):
        raise InputError(f"{origin}sasl.jaas.config: extensions cannot contain a comma")
    found = {BEARER_OPTIONS[name]: it for name, it in options.items() if name in BEARER_OPTIONS}
    if extensions:
        pairs = (f"{name.removeprefix(_EXTENSION)}={it}" for name, it in extensions.items())
        found[BEARER_EXTENSIONS] = ",".join(pairs)
    return found


def _key_pair(location: str) -> dict[str, str]:
    """A PKCS#12 keystore is understood as it is; a PEM file holds key and certificate."""
    if location.endswith(".pem"):
        return {"ssl.key.location": location, "ssl.certificate.location": location}
    return {"ssl.keystore.location": location}
