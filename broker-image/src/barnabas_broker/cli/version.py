"""`barnabas version`: what to write in a bug report."""

from __future__ import annotations

import platform
from importlib import metadata

import click

from barnabas_broker import __version__
from barnabas_broker.cli.output import output_option, print_json
from barnabas_kafka import compiled

PACKAGES = ("uvloop", "confluent-kafka")


@click.command()
@output_option(plain=("text",))
def version(output: str) -> None:
    """Show which versions these are."""
    facts = {
        "build": built_as(),
        **{name: _installed(name) for name in PACKAGES},
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
    }
    if output == "json":
        print_json({"barnabas": __version__, **facts})
        return
    click.echo(f"barnabas {__version__}")
    for name, fact in facts.items():
        click.echo(f"  {name} {fact or 'not installed'}")


def built_as() -> str:
    """`compiled`, or `pure Python` with how many of the compiled modules are missing."""
    missing = len(compiled.interpreted())
    if not missing:
        return "compiled"
    return f"pure Python: {missing} of {len(compiled.MODULES)} modules are not compiled"


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
