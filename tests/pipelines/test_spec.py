"""Which documents are pipelines, and what is said of those that are wrong."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from barnabas_pipelines import spec
from barnabas_pipelines.errors import SpecError
from barnabas_pipelines.spec import PipelineSpec

QUICKSTART = Path(__file__).parents[2] / "manifests" / "examples" / "quickstart.yaml"


def document(**changes: Any) -> dict[str, Any]:
    """A pipeline, with parts of its spec replaced."""
    body = {
        "cluster": "quickstart",
        "source": {"topics": ["packages"]},
        "sink": {"parquet": {"path": "/data/packages"}},
        "storage": {"size": "1Gi"},
    }
    return {
        "apiVersion": "barnabas.io/v1alpha1",
        "kind": "KafkaPipeline",
        "metadata": {"name": "packages-to-parquet"},
        "spec": body | changes,
    }


def test_the_quickstart_is_a_pipeline() -> None:
    """The file that Kubernetes gets runs here too; cluster and topics in it are passed over."""
    assert spec.read(QUICKSTART) == PipelineSpec(
        name="packages-to-parquet",
        topics=("packages",),
        path=PurePosixPath("/data/packages"),
        interval_ms=5_000,
    )


def test_every_field_has_its_say() -> None:
    """What is not default comes out as it was put in."""
    source = {
        "topics": ["a", "b.c_d-9"],
        "startingOffsets": "latest",
        "maxOffsetsPerTrigger": 10,
        "failOnDataLoss": False,
    }
    given = document(
        source=source,
        trigger={"interval": "1m30s"},
        bootstrapServers="kafka:9092",
        master="local[4]",
        user="archivist",
        version="0.1.0",
        image="mine:1",
    )
    assert spec.parse(given) == PipelineSpec(
        name="packages-to-parquet",
        user="archivist",
        topics=("a", "b.c_d-9"),
        path=PurePosixPath("/data/packages"),
        interval_ms=90_000,
        starting_offsets="latest",
        max_offsets_per_trigger=10,
        fail_on_data_loss=False,
        bootstrap="kafka:9092",
        master="local[4]",
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"source": {"topics": []}}, "spec.source.topics must name at least one"),
        ({"source": {"topics": "packages"}}, "spec.source.topics must be a list"),
        ({"source": {"topics": ["a,b"]}}, "'a,b' cannot be the name of a topic"),
        ({"source": {"topics": [".."]}}, "'..' cannot be the name of a topic"),
        ({"source": {"topics": [7]}}, "7 cannot be the name of a topic"),
        ({"source": {"topics": ["a", "a"]}}, "names a topic twice"),
        ({"source": {}}, "spec.source.topics must be a list"),
        ({"source": None}, "spec.source must be there"),
        ({"source": {"topics": ["a"], "startingOffsets": "first"}}, "earliest or latest"),
        ({"source": {"topics": ["a"], "maxOffsetsPerTrigger": 0}}, "must be 1 or more, not 0"),
        ({"source": {"topics": ["a"], "maxOffsetsPerTrigger": True}}, "must be 1 or more"),
        ({"source": {"topics": ["a"], "failOnDataLoss": "no"}}, "true or false, not 'no'"),
        ({"source": {"topic": ["a"]}}, "spec.source.topic is not known; there is failOnDataLoss"),
        ({"sink": {"json": {}}}, "spec.sink.parquet must be there"),
        ({"sink": {"parquet": {"path": "/srv/a"}}}, "must be a directory below /data"),
        ({"sink": {"parquet": {"path": "/data"}}}, "must be a directory below /data"),
        ({"sink": {"parquet": {"path": "/data/../etc"}}}, "must be a directory below /data"),
        ({"sink": {"parquet": {"path": 5}}}, "must be a directory below /data"),
        ({"sink": {"parquet": {"path": "/data/checkpoint/a"}}}, "/data/checkpoint is kept"),
        ({"trigger": {"interval": "0s"}}, "must be a second or more"),
        ({"trigger": {"interval": "500ms"}}, "must be a second or more"),
        ({"trigger": {"interval": 5}}, "must be a second or more, as in 5s; not 5"),
        ({"trigger": {"interval": "soon"}}, "'soon' is no duration"),
        ({"bootstrapServers": ""}, "spec.bootstrapServers must be a text"),
        ({"sinks": {}}, "spec.sinks is not known"),
    ],
)
def test_a_wrong_field_is_named(changes: dict[str, Any], said: str) -> None:
    """With what it should be."""
    with pytest.raises(SpecError) as caught:
        spec.parse(document(**changes))
    assert said in str(caught.value)


def test_a_pipeline_has_a_name() -> None:
    """It becomes a directory; so it is one of Kubernetes' names."""
    for name in ("../up", "", None, "Upper"):
        with pytest.raises(SpecError, match=r"metadata\.name"):
            spec.parse(document() | {"metadata": {"name": name}})


def test_one_of_several_is_chosen_by_name() -> None:
    """Without a name the file must have one only."""
    first, second = document(), document() | {"metadata": {"name": "other"}}
    assert spec.choose([first, second], name="other").name == "other"
    with pytest.raises(SpecError, match=r"several pipelines \(packages-to-parquet, other\)"):
        spec.choose([first, second])
    with pytest.raises(SpecError, match="no KafkaPipeline named third; there is packages"):
        spec.choose([first, second], name="third")
    with pytest.raises(SpecError, match="no document of kind KafkaPipeline"):
        spec.choose([])


def test_documents_of_other_kinds_and_groups_are_passed_over() -> None:
    """Also documents that are no objects at all."""
    others = [{"kind": "KafkaTopic"}, document() | {"apiVersion": "other.io/v1"}, None, 5]
    text = yaml.safe_dump_all([*others, document()])
    assert spec.documents(text) == [document()]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"kind: [", "line 1, column 8: this is no YAML"),
        (b"a: b: c", "line 1, column 5: this is no YAML"),
        (b"\xff\xfe\x00", "it is no UTF-8 text"),
        (b"", "no document of kind KafkaPipeline"),
    ],
)
def test_a_file_that_is_none_is_said_with_its_place(
    tmp_path: Path, content: bytes, said: str
) -> None:
    """File, line and column."""
    file = tmp_path / "pipeline.yaml"
    file.write_bytes(content)
    with pytest.raises(SpecError) as caught:
        spec.read(file)
    assert str(file) in str(caught.value)
    assert said in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Which, and why."""
    with pytest.raises(SpecError, match=r"cannot read .*absent.yaml: No such file"):
        spec.read(tmp_path / "absent.yaml")


def test_durations() -> None:
    """As Kubernetes writes them, and days."""
    assert spec.duration_ms("1h30m") == 5_400_000
    assert spec.duration_ms("1d2h3m4s5ms") == 93_784_005
    for wrong in ("", "5", "s", "5 s", "-5s", "1.5h"):
        with pytest.raises(ValueError, match="is no duration"):
            spec.duration_ms(wrong)
