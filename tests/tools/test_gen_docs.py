"""The reference pages say what the declarations say, and drift is found."""

from pathlib import Path

import pytest

from barnabas_kafka.settings import broker, topic
from tools import gen_docs


def test_every_setting_is_on_its_page() -> None:
    """A reader can look up any name."""
    for page, keys in ((gen_docs.broker_page(), broker.KEYS), (gen_docs.topic_page(), topic.KEYS)):
        for name in keys:
            assert f"| `{name}` |" in page


def test_tables_have_whole_rows() -> None:
    """Each row has as many cells as its head, whatever a text holds."""
    for page in gen_docs.pages().values():
        width = 0
        for line in page.splitlines():
            if not line.startswith("|"):
                width = 0
                continue
            cells = line.replace("\\|", "").count("|")
            width = width or cells
            assert cells == width, line


def test_drift_is_found_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--check writes nothing and names what differs; without it the pages are written."""
    monkeypatch.setattr(gen_docs, "DIRECTORY", tmp_path / "reference")
    assert gen_docs.main(["--check"]) == 1
    assert "topic-settings.md differs from the code" in capsys.readouterr().err
    assert not (tmp_path / "reference").exists()
    assert gen_docs.main([]) == 0
    assert gen_docs.main(["--check"]) == 0
    (tmp_path / "reference" / "topic-settings.md").write_text("old")
    assert gen_docs.main(["--check"]) == 1
