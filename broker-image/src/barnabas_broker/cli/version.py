"""`barnabas version`: what to write in a bug report."""

from __future__ import annotations

import json
import platform
from importlib import metadata

import click

PACKAGES = ("barnabas-broker", "barnabas-kafka", "uvloop", "confluent-kafka")


@click.command()
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def version(output: str) -> None:
    """Show which versions these are."""
    versions = {name: _installed(name) for name in PACKAGES}
    versions["python"] = platform.python_version()
    versions["platform"] = f"{platform.system()} {platform.release()} {platform.machine()}"
    if output == "json":
        click.echo(json.dumps(versions, indent=2))
        return
    click.echo(f"barnabas {versions['barnabas-broker']}")
    for name, number in list(versions.items())[1:]:
        click.echo(f"  {name} {number or 'not installed'}")


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
