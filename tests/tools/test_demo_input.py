"""What the demonstration finds on a machine."""

import os
from pathlib import Path

import pytest

from tools import demo_input


def test_there_is_something_on_every_machine() -> None:
    """Python's own library is enough for many small records and for whole files."""
    lines, sources = list(demo_input.lines()), list(demo_input.sources())
    assert len(lines) == demo_input.LINES_MAX
    assert all(name.endswith(b".py") for name, _ in lines)
    assert 0 < sum(len(content) for _, content in sources) <= demo_input.SOURCES_BYTES_MAX


def test_packages_are_keyed_by_name(tmp_path: Path) -> None:
    """A paragraph each, whole; a paragraph without a name is none."""
    status = tmp_path / "status"
    status.write_bytes(b"Package: a\nVersion: 1\n\nVersion: 0\n\nEssential: yes\nPackage: b\n")
    databases = [(tmp_path / "missing", b"P:"), (status, b"Package: ")]
    assert list(demo_input.packages(databases)) == [
        (b"a", b"Package: a\nVersion: 1"),
        (b"b", b"Essential: yes\nPackage: b\n"),
    ]


def test_tables_are_keyed_by_their_first_word(tmp_path: Path) -> None:
    """Blank lines have no key and are left out; tables that are missing are not missed."""
    (tmp_path / "passwd").write_bytes(b"root:x:0\n\n")
    (tmp_path / "services").write_bytes(b"ssh\t22/tcp\n")
    assert list(demo_input.tables(tmp_path)) == [
        (b"services/ssh", b"ssh\t22/tcp"),
        (b"passwd/root", b"root:x:0"),
    ]


def test_python_files_are_streamed_whole_and_by_line(tmp_path: Path) -> None:
    """In the order of their names, without those that were installed besides."""
    files = {"b.py": b"x = 1\n\ny = 2\n", "a/c.py": b"", "site-packages/d.py": b"z"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text)
    assert list(demo_input.sources(tmp_path)) == [(b"a/c.py", b""), (b"b.py", files["b.py"])]
    expected = [(b"b.py", line) for line in (b"x = 1", b"", b"y = 2")]
    assert list(demo_input.lines(tmp_path)) == expected


def test_the_streams_of_a_machine_are_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of which there is nothing here has no stream."""
    monkeypatch.setattr(demo_input, "packages", lambda: iter(()))
    monkeypatch.setattr(demo_input, "LINES_MAX", 10)
    monkeypatch.setattr(demo_input, "SOURCES_BYTES_MAX", 1 << 20)
    monkeypatch.setattr(demo_input, "large_files", lambda: iter([(b"k", b"v")]))
    monkeypatch.setattr(demo_input, "tables", lambda: iter([(b"k", b"v")]))
    found = {stream.topic: len(stream.records) for stream in demo_input.streams()}
    sources = found.pop("demo.sources")
    assert found == {"demo.tables": 1, "demo.lines": 10, "demo.large": 1}
    assert sources > 0


def test_large_files_are_the_largest_that_fit(tmp_path: Path) -> None:
    """Byte for byte, each once; small files and links are left out."""
    for name, size in (("small", 10), ("large", 3 << 20), ("larger", 4 << 20), ("huge", 30 << 20)):
        (tmp_path / name).write_bytes(name[:1].encode() * size)
    (tmp_path / "link").symlink_to("large")
    found = dict(demo_input.large_files([tmp_path]))
    assert [Path(os.fsdecode(key)).name for key in found] == ["larger", "large"]
    assert found[os.fsencode(tmp_path / "large")] == b"l" * (3 << 20)
