"""What a Kubernetes API server says of its built-in kinds, and our CRDs of ours: OpenAPI as data.

The schemas are those that Kubernetes publishes, as the `kubernetes-validate` package carries them.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import jsonschema

from barnabas_operator.api.definitions import DEFINITIONS, crd

Schema = Mapping[str, Any]

# The oldest that docs/kubernetes.md promises, and the newest that is published.
OLDEST: Final = "1.29.0"
NEWEST: Final = "1.37.0"
NOTHING: Final[Schema] = {}
# Definitions of other projects, which an API server need not have.
FOREIGN: Final = ("gateway.networking.k8s.io/", "cert-manager.io/")
# Our CRDs leave to the API server what every object has.
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


@functools.cache
def definitions_of(version: str) -> dict[str, Any]:
    """All definitions of a version; no key is allowed that none of them has."""
    place = f"kubernetes-json-schema/v{version}-local-strict/_definitions.json"
    text = importlib.resources.files("kubernetes_validate").joinpath(place).read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)["$defs"]
    return loaded


@functools.cache
def schema_of(api_version: str, kind: str, version: str = NEWEST) -> Schema:
    """The schema of a kind; an empty one where it is unknown."""
    group, _, name = api_version.rpartition("/")
    wanted = {"group": group, "kind": kind, "version": name}
    for schema in definitions_of(version).values():
        if wanted in schema.get("x-kubernetes-group-version-kind", ()):
            return dict(schema)
    return _own_schema(kind)


def _own_schema(kind: str) -> Schema:
    for definition in DEFINITIONS:
        if definition.kind == kind:
            schema = crd(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            schema["properties"]["metadata"] = {"$ref": f"#/$defs/{META}"}
            return _strict(schema)
    return NOTHING


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """An API server prunes a key that a CRD does not have; here it is an error."""
    if "properties" in schema:
        properties = {key: _strict(each) for key, each in schema["properties"].items()}
        return {**schema, "properties": properties, "additionalProperties": False}
    inner = {
        key: _strict(schema[key]) for key in ("items", "additionalProperties") if schema.get(key)
    }
    return {**schema, **inner}


def resolved(schema: Schema) -> Schema:
    """The schema behind a reference; what stands beside the reference stays."""
    if "$ref" not in schema:
        return schema
    name = schema["$ref"].rpartition("/")[2]
    return {**definitions_of(NEWEST)[name], **{k: v for k, v in schema.items() if k != "$ref"}}


def member(schema: Schema, key: str) -> Schema:
    """The schema of an object's field or of a map's value."""
    schema = resolved(schema)
    found = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
    return resolved(found) if isinstance(found, Mapping) else NOTHING


def item(schema: Schema) -> Schema:
    """The schema of a list's items."""
    return resolved(resolved(schema).get("items", NOTHING))


def problems(body: Mapping[str, Any], version: str) -> Iterator[str]:
    """What an API server of a version would refuse of an object: keys, types, missing fields."""
    if body["apiVersion"].startswith(FOREIGN):
        return
    schema = {
        **schema_of(body["apiVersion"], body["kind"], version),
        "$defs": definitions_of(version),
    }
    assert len(schema) > 1, f"no schema of {body['apiVersion']} {body['kind']}"
    validator = jsonschema.Draft202012Validator(schema)
    for error in validator.iter_errors(json.loads(json.dumps(body))):
        yield f"{'.'.join(map(str, error.absolute_path)) or 'the object'}: {error.message}"


def refuse_unknown(body: Mapping[str, Any], *, part: str = "") -> None:
    """An AssertionError if the newest API server would drop or refuse something of an object.

    With a `part` that alone is looked at, as where the rest is not what was written.
    """
    found = [each for each in _found(json.dumps(body, sort_keys=True)) if each.startswith(part)]
    assert not found, f"{body['kind']} {body['metadata']['name']}: {found}"


@functools.lru_cache(4096)
def _found(text: str) -> tuple[str, ...]:
    return tuple(problems(json.loads(text), NEWEST))
