"""Files of Kafka's tools: what is wrong with one is told with its name and the place."""

from pathlib import Path

import pytest

from barnabas_broker.cli.errors import InputError
from barnabas_broker.cli.json_files import read_json, write_json
from barnabas_kafka.reassignment.files import read_topics


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """One document, one line; a byte order mark, as some editors leave it, does no harm."""
    path = tmp_path / "topics.json"
    write_json(path, '{"topics":[{"topic":"größe"}]}')
    assert path.read_text(encoding="utf-8").endswith("}]}\n")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_json(path, read_topics) == ("größe",)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"topics": [', "line 1, column 13: it is no JSON"),
        (b"\xff\xfe{", "it is not text in UTF-8"),
        (b'{"topics": [{}]}', "topics[0].topic: a name is missing"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, data: bytes, told: str) -> None:
    """File first, then place, then why."""
    path = tmp_path / "topics.json"
    path.write_bytes(data)
    with pytest.raises(InputError) as refused:
        read_json(path, read_topics)
    assert refused.value.message.startswith(f"{path}: {told}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Neither to read nor to write."""
    path = tmp_path / "no" / "file.json"
    with pytest.raises(InputError, match="No such file or directory"):
        read_json(path, read_topics)
    with pytest.raises(InputError, match="No such file or directory"):
        write_json(path, "{}")
