"""The written CRDs are those of the typed resources, and small enough for `kubectl apply`."""

from __future__ import annotations

import pytest
import yaml

from barnabas_operator.api.definitions import DEFINITIONS
from tools import gen_crds


def test_one_file_for_each_kind() -> None:
    """Each is a CustomResourceDefinition whose name is plural and group."""
    documents = [yaml.safe_load(text) for text in gen_crds.rendered().values()]
    names = [document["metadata"]["name"] for document in documents]
    assert names == [f"{definition.plural}.barnabas.io" for definition in DEFINITIONS]


def test_files_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """Both in crds/ and in the chart."""
    assert gen_crds.main(["--check"]) == 0, capsys.readouterr().out


def test_a_definition_that_is_too_large_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """`kubectl apply` keeps a copy in an annotation, which has a limit."""
    monkeypatch.setattr(gen_crds, "LARGEST", 1000)
    with pytest.raises(ValueError, match="bytes, at most 1000"):
        gen_crds.rendered()
