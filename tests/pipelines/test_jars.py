"""Jars are what was tested, or there are none."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from barnabas_pipelines import jars
from barnabas_pipelines.errors import PipelineError
from barnabas_pipelines.jars import Jar

CONTENT = b"a jar"
JAR = Jar("org.example", "some-thing_2.13", "1.2.3", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A Maven repository with one jar."""
    path = tmp_path / "repository" / JAR.path
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    return tmp_path / "repository"


def test_the_lock_file_has_the_connector() -> None:
    """Four jars, each where Maven has it."""
    locked = jars.locked()
    assert len(locked) == 4
    assert locked[0].path == (
        "org/apache/spark/spark-sql-kafka-0-10_2.13/4.2.0/spark-sql-kafka-0-10_2.13-4.2.0.jar"
    )


@pytest.mark.parametrize(
    "line", ["maven:a:b 00", f"maven:a:b:c {'0' * 63}", f"pypi:a:b:c {'0' * 64}", "x"]
)
def test_a_lock_file_is_read_strictly(line: str) -> None:
    """A line that is not understood is an error, not a jar less."""
    with pytest.raises(ValueError, match="not a line of a jar lock file"):
        jars.parse(f"# comment\n\n{line}\n")


def test_jars_are_fetched_once(repository: Path, tmp_path: Path) -> None:
    """What is there with the right bytes is not fetched again."""
    place = tmp_path / "jars"
    assert jars.fetch(place, [JAR], source=repository.as_uri()) == [place / JAR.name]
    assert jars.fetch(place, [JAR], source="file:///nowhere") == [place / JAR.name]
    assert [path.read_bytes() for path in place.iterdir()] == [CONTENT]


def test_a_damaged_jar_is_fetched_again(repository: Path, tmp_path: Path) -> None:
    """A jar that was cut off does not stay."""
    place = tmp_path / "jars"
    place.mkdir()
    (place / JAR.name).write_bytes(CONTENT[:2])
    jars.fetch(place, [JAR], source=repository.as_uri())
    assert (place / JAR.name).read_bytes() == CONTENT


def test_other_bytes_are_refused(repository: Path, tmp_path: Path) -> None:
    """Whoever the repository is."""
    (repository / JAR.path).write_bytes(b"another jar")
    with pytest.raises(PipelineError, match="is not the jar that was tested: its sha256 is"):
        jars.fetch(tmp_path / "jars", [JAR], source=repository.as_uri())
    assert jars.missing(tmp_path / "jars", [JAR]) == [JAR]


def test_a_repository_without_it_is_named(tmp_path: Path) -> None:
    """With the address asked for and the variable that names another."""
    with pytest.raises(PipelineError, match=r"cannot fetch file:.*BARNABAS_MAVEN_REPOSITORY"):
        jars.fetch(tmp_path / "jars", [JAR], source=tmp_path.as_uri())
    with pytest.raises(PipelineError, match="/srv/maven is no address of a Maven repository"):
        jars.fetch(tmp_path / "jars", [JAR], source="/srv/maven")


def test_a_directory_that_cannot_be_is_named(repository: Path, tmp_path: Path) -> None:
    """Here a file is in its place."""
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match=r"cannot keep Spark's jars in .*/file"):
        jars.fetch(tmp_path / "file", [JAR], source=repository.as_uri())


def test_the_environment_says_where_from_and_where_to() -> None:
    """Maven's own repository and the user's cache are the defaults."""
    assert jars.repository({}) == jars.DEFAULT_REPOSITORY
    assert jars.repository({"BARNABAS_MAVEN_REPOSITORY": "https://m/x/"}) == "https://m/x"
    assert jars.default_directory({"XDG_CACHE_HOME": "/c"}) == Path("/c/barnabas/jars")
    assert jars.default_directory({}).parts[-3:] == (".cache", "barnabas", "jars")
