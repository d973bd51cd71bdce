"""Generated files: reference pages, CRDs and manifests are up to date, and drift is found."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from barnabas_kafka.settings import broker, topic
from barnabas_operator.api.definitions import DEFINITIONS
from tools import gen_crds, gen_docs
from tools.render_manifests import chart_digest, is_intact, main, sealed


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


def test_one_file_for_each_kind() -> None:
    """Each is a CustomResourceDefinition whose name is plural and group."""
    documents = [yaml.safe_load(text) for text in gen_crds.rendered().values()]
    names = [document["metadata"]["name"] for document in documents]
    assert names == [f"{definition.plural}.barnabas.io" for definition in DEFINITIONS]


def test_crds_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """Both in crds/ and in the chart."""
    assert gen_crds.main(["--check"]) == 0, capsys.readouterr().out


def test_a_definition_that_is_too_large_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """`kubectl apply` keeps a copy in an annotation, which has a limit."""
    monkeypatch.setattr(gen_crds, "LARGEST", 1000)
    with pytest.raises(ValueError, match="bytes, at most 1000"):
        gen_crds.rendered()


def test_manifests_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """The manifests in the tree are of the chart in the tree."""
    assert main(["--check"]) == 0, capsys.readouterr().out


def test_without_helm_the_digests_are_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The check needs no Helm."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["--check"]) == 0


def test_an_edited_file_is_not_intact() -> None:
    """Neither with another body nor for another chart."""
    text = sealed("kind: A\n", "chart")
    assert is_intact(text, "chart")
    assert not is_intact(text.replace("A", "B"), "chart")
    assert not is_intact(text, "another chart")
    assert not is_intact("", "chart")


def test_digest_follows_names_and_contents(tmp_path: Path) -> None:
    """A renamed file is another chart."""
    (tmp_path / "a").write_text("x")
    first = chart_digest(tmp_path)
    assert chart_digest(tmp_path) == first
    (tmp_path / "a").rename(tmp_path / "b")
    assert chart_digest(tmp_path) != first
