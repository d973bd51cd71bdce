"""The reference of the command line has every command and every option."""

from __future__ import annotations

import re

from click.testing import CliRunner

from barnabas_broker.cli.main import VERBS, main
from tools.reference_cli import page

PAGE = page("")


def test_every_command_is_on_the_page() -> None:
    """Also those of other distributions, and subcommands."""
    for name in [*VERBS, "local", "size", "pipeline"]:
        assert f"\n## barnabas {name}\n" in PAGE
    for command in ("topics create", "broker start", "local up", "reassign plan"):
        assert f"\n### barnabas {command}\n" in PAGE


def test_options_are_those_of_the_help() -> None:
    """A section holds what `-h` shows."""
    section = PAGE.partition("### barnabas topics create\n")[2].partition("\n### ")[0]
    shown = CliRunner().invoke(main, ["topics", "create", "-h"]).output
    options = set(re.findall(r"--[a-z][a-z-]+", shown)) - {"--help"}
    assert len(options) > 5
    assert options == set(re.findall(r"--[a-z][a-z-]+", section))


def test_it_is_the_same_on_every_machine() -> None:
    """Neither the width of a terminal nor a home directory is in it."""
    assert "/root" not in PAGE
    assert "/home/" not in PAGE


def test_kafkas_tools_are_listed_with_those_that_are_refused() -> None:
    """By what the scripts of the distribution name."""
    there, _, refused = PAGE.partition("These say why")
    assert "* `kafka-topics`" in there
    assert "* `kafka-metadata-quorum`" in refused
