"""Messages as JSON for people and tools, in the form that Kafka's generated converters give them.

Fields in the order of the schema, under its names in camel case, and only those of the version:
a tagged one where it differs from its default, bytes in base64, topic ids in Kafka's URL-safe form.
"""

import json
from base64 import b64encode
from typing import Any
from uuid import UUID

from barnabas_kafka.ids import uuid_to_base64
from barnabas_kafka.protocol.schema import Struct

Fields = dict[str, Any]


def write(message: Struct, version: int) -> Fields:
    """The fields of a message, or of a part of one, in this version (`JsonConverter.write`)."""
    found: Fields = {}
    for name, field in type(message).__fields__.items():
        value = getattr(message, name)
        if version not in field.versions or (field.tag is not None and value == field.default):
            continue
        found[_camel_case(name)] = _value(value, version)
    return found


def dumps(value: Fields) -> str:
    """The text of what `write` returned, on one line and without spaces as Jackson prints it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _value(value: object, version: int) -> object:
    if isinstance(value, Struct):
        return write(value, version)
    if isinstance(value, list):
        return [_value(each, version) for each in value]
    if isinstance(value, UUID):
        return uuid_to_base64(value)
    return b64encode(value).decode("ascii") if isinstance(value, bytes) else value


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
