"""The KafkaPipeline document of a YAML file, as a value that is known to be sensible.

The same document that the Kubernetes API holds; without Kubernetes it gets the same
answers from here that the API's schema gives there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import yaml

from barnabas_pipelines.errors import SpecError

KIND: Final = "KafkaPipeline"
GROUP: Final = "barnabas.io/"
# Where the claim is mounted in a pod; sinks are below it.
VOLUME: Final = PurePosixPath("/data")
# What the runner itself keeps on the volume.
RESERVED: Final = frozenset({"checkpoint", "work", "status.json", "lost+found"})

DEFAULT_MASTER: Final = "local[2]"
DEFAULT_INTERVAL: Final = "5s"
INTERVAL_MS_MIN: Final = 1_000  # With 0 an idle query asks the broker some hundred times a second.
DEFAULT_MAX_OFFSETS_PER_TRIGGER: Final = 1_000_000
STARTING_OFFSETS: Final = ("earliest", "latest")

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(?:[0-9]+(?:ms|[smhd]))+")
_PART: Final = re.compile(r"([0-9]+)(ms|[smhd])")
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")

_FIELDS: Final = {
    "spec": {
        "cluster", "user", "source", "sink", "trigger", "storage", "resources", "version", "image",
        "imagePullSecrets",
        "master", "bootstrapServers",
    },
    "spec.source": {"topics", "startingOffsets", "maxOffsetsPerTrigger", "failOnDataLoss"},
    "spec.sink": {"parquet"},
    "spec.sink.parquet": {"path"},
    "spec.trigger": {"interval"},
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSpec:
    """One pipeline: topics in, Parquet files out."""

    name: str
    topics: tuple[str, ...]
    path: PurePosixPath  # Below /data, as the document has it.
    interval_ms: int
    starting_offsets: str = "earliest"
    max_offsets_per_trigger: int = DEFAULT_MAX_OFFSETS_PER_TRIGGER
    fail_on_data_loss: bool = True
    user: str | None = None  # The KafkaUser as which it reads.
    bootstrap: str | None = None
    master: str = DEFAULT_MASTER


def read(path: Path, *, name: str | None = None) -> PipelineSpec:
    """The pipeline of a file; other documents in it are passed over.

    `name` chooses where the file has several. Raises SpecError, which names file and field.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise SpecError(f"cannot read {path}: {reason}") from error
    try:
        return choose(documents(text), name=name)
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error


def documents(text: str) -> list[Mapping[str, Any]]:
    """The KafkaPipeline documents of a YAML text; raises SpecError with line and column."""
    try:
        loaded = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise SpecError(f"{where}this is no YAML: {problem}") from error
    return [
        document
        for document in loaded
        if isinstance(document, Mapping)
        and document.get("kind") == KIND
        and str(document.get("apiVersion", GROUP)).startswith(GROUP)
    ]


def choose(found: Sequence[Mapping[str, Any]], *, name: str | None = None) -> PipelineSpec:
    """The one pipeline that is meant; raises SpecError where there is none or more than one."""
    if not found:
        raise SpecError(f"no document of kind {KIND}")
    specs = [parse(document) for document in found]
    names = ", ".join(spec.name for spec in specs)
    if name is not None:
        specs = [spec for spec in specs if spec.name == name]
        if not specs:
            raise SpecError(f"no {KIND} named {name}; there is {names}")
    if len(specs) > 1:
        raise SpecError(f"several pipelines ({names}): choose one with --name")
    return specs[0]


def parse(document: Mapping[str, Any]) -> PipelineSpec:
    """One document; raises SpecError with the field that is wrong."""
    metadata = _mapping(document, "metadata")
    name = metadata.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SpecError("metadata.name must be small letters, digits, dashes and dots")
    spec = _mapping(document, "spec")
    _known("spec", spec)
    source = _mapping(spec, "source", "spec.")
    trigger = _mapping(spec, "trigger", "spec.", optional=True)
    sink = _mapping(spec, "sink", "spec.")
    parquet = _mapping(sink, "parquet", "spec.sink.")
    for place, part in (
        ("spec.source", source), ("spec.sink", sink),
        ("spec.sink.parquet", parquet), ("spec.trigger", trigger),
    ):  # fmt: skip
        _known(place, part)
    return PipelineSpec(
        name=name,
        topics=_topics(source.get("topics")),
        path=_sink_path(parquet.get("path")),
        interval_ms=_interval_ms(trigger.get("interval", DEFAULT_INTERVAL)),
        starting_offsets=_starting_offsets(source.get("startingOffsets", "earliest")),
        max_offsets_per_trigger=_positive(
            source.get("maxOffsetsPerTrigger", DEFAULT_MAX_OFFSETS_PER_TRIGGER)
        ),
        fail_on_data_loss=_flag(source.get("failOnDataLoss", True)),
        user=_text("spec.user", spec.get("user")),
        bootstrap=_text("spec.bootstrapServers", spec.get("bootstrapServers")),
        master=_text("spec.master", spec.get("master")) or DEFAULT_MASTER,
    )


def duration_ms(text: str) -> int:
    """The milliseconds of a duration such as 5s or 1h30m; raises ValueError."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is no duration such as 5s or 1m30s")
    return sum(int(number) * _UNITS_MS[unit] for number, unit in _PART.findall(text))


def _mapping(
    parent: Mapping[str, Any], key: str, place: str = "", *, optional: bool = False
) -> Mapping[str, Any]:
    found = parent.get(key)
    if found is None and optional:
        return {}
    if not isinstance(found, Mapping):
        raise SpecError(f"{place}{key} must be there and hold fields")
    return found


def _known(place: str, found: Mapping[str, Any]) -> None:
    for key in found:
        if key not in _FIELDS[place]:
            known = ", ".join(sorted(_FIELDS[place]))
            raise SpecError(f"{place}.{key} is not known; there is {known}")


def _topics(value: object) -> tuple[str, ...]:
    topics = tuple(_names(value))
    if not topics:
        raise SpecError("spec.source.topics must name at least one topic")
    if len(set(topics)) != len(topics):
        raise SpecError("spec.source.topics names a topic twice")
    return topics


def _names(value: object) -> Iterator[str]:
    if not isinstance(value, list):
        raise SpecError("spec.source.topics must be a list of names")
    for name in value:
        if not isinstance(name, str) or not _TOPIC.fullmatch(name):
            raise SpecError(f"spec.source.topics: {name!r} cannot be the name of a topic")
        yield name


def _sink_path(value: object) -> PurePosixPath:
    place = "spec.sink.parquet.path"
    path = PurePosixPath(value) if isinstance(value, str) else None
    if path is None or not path.is_relative_to(VOLUME) or path == VOLUME or ".." in path.parts:
        raise SpecError(f"{place} must be a directory below {VOLUME}, the pipeline's volume")
    first = path.relative_to(VOLUME).parts[0]
    if first in RESERVED:
        raise SpecError(f"{place}: {VOLUME / first} is kept for the pipeline itself")
    return path


def _interval_ms(value: object) -> int:
    try:
        interval_ms = duration_ms(value) if isinstance(value, str) else 0
    except ValueError as error:
        raise SpecError(f"spec.trigger.interval: {error}") from error
    if interval_ms < INTERVAL_MS_MIN:
        raise SpecError(f"spec.trigger.interval must be a second or more, as in 5s; not {value!r}")
    return interval_ms


def _starting_offsets(value: object) -> str:
    if value not in STARTING_OFFSETS:
        raise SpecError(f"spec.source.startingOffsets must be earliest or latest, not {value!r}")
    return str(value)


def _positive(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SpecError(f"spec.source.maxOffsetsPerTrigger must be 1 or more, not {value!r}")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise SpecError(f"spec.source.failOnDataLoss must be true or false, not {value!r}")
    return value


def _text(place: str, value: object) -> str | None:
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise SpecError(f"{place} must be a text, not {value!r}")
    return value
