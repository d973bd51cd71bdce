"""What the documents show can be pasted: commands have their options, resources can be applied."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import click
import pytest
import yaml

from barnabas_broker.cli.main import main
from barnabas_operator.api import API_VERSION
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import (
    Resource,
    read_cluster,
    read_pipeline,
    read_topic,
    read_user,
)
from barnabas_operator.plan.security import security_problems
from tests.operator import examples
from tests.snippets import ROOT, Snippet, commands, pages, snippets

SCRIPTS: Final[dict[str, str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "scripts"
]
PROGRAMS: Final = frozenset({*SCRIPTS, "make"})
TARGETS: Final = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))
SHELL: Final = {"", "sh", "bash", "console", "text"}
BLOCKS, SPANS = (
    [snippet for page in found for snippet in page]
    for found in zip(*(snippets((ROOT / page).read_text(), page) for page in pages()), strict=True)
)
COMMANDS: Final = [
    (snippet, words)
    for snippet in BLOCKS
    if snippet.language in SHELL
    for words in commands(snippet.text, PROGRAMS)
]


def command_of(words: list[str]) -> tuple[click.Command, click.Context, list[str]] | None:
    """The command that words name, its context, and the words that are left for it.

    None for a tool that is no click command. Raises click.UsageError where there is no such verb.
    """
    module, _, attribute = SCRIPTS[words[0]].partition(":")
    entry = main if words[0] == "barnabas" else getattr(import_module(module), attribute)
    if not isinstance(entry, click.Command):
        return None
    command, rest = entry, words[1:]
    context = click.Context(command, info_name=words[0])
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        _, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command, context = found, click.Context(found, info_name=found.name, parent=context)
    return command, context, rest


def problem_of(words: list[str]) -> str:
    """Why a command is refused before it does anything; empty where it is not."""
    if words[0] == "make":
        asked = {word for word in words[1:] if "=" not in word}
        return ", ".join(sorted(asked - TARGETS))
    try:
        if (named := command_of(words)) is not None:
            command, context, rest = named
            command.parse_args(context, rest)
    except click.UsageError as error:
        return error.message
    except click.exceptions.Exit:  # --help and --version.
        return ""
    return ""


@pytest.mark.parametrize(
    ("snippet", "words"), COMMANDS, ids=[f"{each.where}-{words[1]}" for each, words in COMMANDS]
)
def test_each_command_of_a_block_is_accepted(
    monkeypatch: pytest.MonkeyPatch, snippet: Snippet, words: list[str]
) -> None:
    """By the parsers themselves: a renamed option breaks the page, as does an unmarked comment."""
    # Files are the reader's.
    monkeypatch.setattr(click.Path, "convert", lambda _, value, *__: value)
    assert problem_of(words) == "", f"{snippet.where}: {' '.join(words)}"


# --- resources ------------------------------------------------------------------------------------

CLAIM: Final = {"storage": {"size": "1Gi"}}
# What a page leaves out, for it has been shown above.
LEFT_OUT: Final[dict[str, dict[str, Any]]] = {
    "KafkaCluster": {"zookeeper": CLAIM, "brokers": CLAIM},
    "KafkaTopic": {},
    "KafkaUser": {},
    "KafkaPipeline": examples.pipeline()["spec"],
}
READERS: Final[dict[str, Callable[[Any], Resource[Any]]]] = {
    "KafkaCluster": read_cluster,
    "KafkaTopic": read_topic,
    "KafkaUser": read_user,
    "KafkaPipeline": read_pipeline,
}
CLUSTER_FIELDS: Final = {"brokers", "listeners", "zookeeper"}
OTHERS: Final = {"Kustomization", "Certificate"}


def documents() -> list[tuple[Snippet, Any]]:
    """Each document of YAML in the pages."""
    return [
        (snippet, document)
        for snippet in BLOCKS
        if snippet.language == "yaml"
        for document in yaml.safe_load_all(snippet.text)
    ]


def whole(document: dict[str, Any]) -> dict[str, Any]:
    """A resource of ours, with what its page leaves out."""
    if document.keys() & CLUSTER_FIELDS:
        document = {"spec": document}
    kind = document.get("kind", "KafkaCluster")
    spec = LEFT_OUT[kind] | document["spec"]
    if kind == "KafkaCluster":
        spec["brokers"] = CLAIM | spec["brokers"]
    meta = {"name": "example", "namespace": "default"} | document.get("metadata", {})
    return {"apiVersion": API_VERSION} | document | {"kind": kind, "metadata": meta, "spec": spec}


@pytest.mark.parametrize(("snippet", "document"), documents())
def test_each_resource_of_a_page_is_accepted(snippet: Snippet, document: dict[str, Any]) -> None:
    """It has the fields that its definition has, and the rules of the cluster hold."""
    ours = document.keys() & {"kind", "spec", *CLUSTER_FIELDS}
    if document.get("kind") in OTHERS or not ours:  # Of another program, or a part of a part.
        return
    complete = whole(document)
    assert complete["apiVersion"] == API_VERSION, snippet.where
    read = READERS[complete["kind"]](complete)
    assert not read.unknown_fields, snippet.where
    if isinstance(read.body, KafkaCluster):
        assert list(security_problems(read.body)) == [], snippet.where


# --- code spans -----------------------------------------------------------------------------------


def unknown_words(words: list[str]) -> set[str]:
    """The verb that is not there, or the options that the command does not have."""
    try:
        named = command_of(words)
    except click.UsageError as error:
        return {error.message}
    if named is None:
        return set()
    command, _, rest = named
    options = {each for parameter in command.params for each in parameter.opts}
    options |= {each for parameter in command.params for each in parameter.secondary_opts}
    asked = {word.partition("=")[0] for word in rest if word.startswith("--")}
    return asked - options - {"--help", "--version"}


def test_each_command_in_a_sentence_has_its_options() -> None:
    """`barnabas …` between backticks; its arguments may be left out there."""
    wrong = [
        f"{span.where}: {' '.join(words)}: {', '.join(sorted(unknown))}"
        for span in SPANS
        for words in commands(span.text, frozenset(SCRIPTS))
        if len(words) > 1 and not words[1].isupper() and (unknown := unknown_words(words))
    ]
    assert wrong == []
