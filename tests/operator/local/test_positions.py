"""Where the values of a YAML file are."""

from __future__ import annotations

import pytest
import yaml

from barnabas_operator.local.positions import load_all

TEXT = """\
# a comment
kind: KafkaCluster
spec:
  listeners:
    - name: plain
      port: 80
    - {name: other}
  config:
    num.partitions: 3
    num.partitions: 4
---
---
kind: KafkaTopic
"""


def test_every_value_has_its_line() -> None:
    """Of several documents, empty ones left out; what is not there has that of what it is in."""
    first, second = load_all(TEXT)
    assert first.document["spec"]["listeners"][0] == {"name": "plain", "port": 80}
    for path, line in (
        ("kind", 2),
        ("spec", 3),
        ("spec.listeners[0].port", 6),
        ("spec.listeners[1].name", 7),
        ("spec.listeners[1].port", 7),
        ("spec.listeners[9].port", 4),
        ("spec.config.num.partitions", 10),
        ("spec.config.log.dirs", 8),
        ("metadata.name", 2),
        ("", 2),
    ):
        assert first.line(path) == line, path
    assert first.twice == ("spec.config.num.partitions",)
    assert (second.document, second.line("kind"), second.twice) == ({"kind": "KafkaTopic"}, 13, ())


def test_aliases_are_walked_once() -> None:
    """Of ten lines one could make a billion values otherwise."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    (placed,) = load_all("\n".join(lines))
    assert len(placed.lines) < 500


def test_invalid_yaml_is_refused() -> None:
    """As the library tells it."""
    with pytest.raises(yaml.YAMLError):
        list(load_all("a: [1"))
    with pytest.raises(yaml.YAMLError):
        list(load_all("a: !!python/object:os.system {}"))
