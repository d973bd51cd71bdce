"""`barnabas pki`: an authority and certificates for development."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.output import done, output_option, print_json, results_option
from barnabas_broker.security.development_pki import Authority, read_text
from barnabas_kafka.certificates import CertificateError, read_certificate, split_bundle

DEVELOPMENT = (
    "This authority is for development: its key is a file, and nothing it signs can be revoked."
)

_directory = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("pki"),
    show_default=True,
    help="Where the authority is.",
)


@click.group()
def pki() -> None:
    """Create an authority and certificates for development."""


@pki.command()
@_directory
@click.option("--name", default="Barnabas development", show_default=True, help="Its common name.")
@results_option
def init(directory: Path, name: str) -> None:
    """Create an authority: `authority.pem`, which clients trust, and its private key."""
    try:
        authority = Authority.init(directory, name)
    except (CertificateError, OSError) as error:
        raise CommandError(str(error)) from None
    done(str(authority.trust), {"file": str(authority.trust)})
    click.echo(DEVELOPMENT, err=True)


@pki.command()
@click.argument("name")
@_directory
@click.option("--host", "hosts", multiple=True, help="A host that it is for; repeatable.")
@click.option("--days", type=click.IntRange(1, 3650), default=365, show_default=True)
@click.option(
    "--out",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; NAME.pem beside the authority by default.",
)
@results_option
def issue(name: str, directory: Path, hosts: tuple[str, ...], days: int, file: Path | None) -> None:
    """Issue a certificate for the common name NAME.

    The file holds private key and certificates: it is the key store of a broker (with `--host` for
    each name that clients reach it by) or of a client (without), which is then User:CN=NAME.
    """
    try:
        issued = Authority(directory).issue(name, hosts, days=days, file=file)
    except CertificateError as error:
        raise CommandError(str(error)) from None
    done(str(issued), {"file": str(issued)})


@pki.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output_option
def show(file: Path, output: str) -> None:
    """Show the certificates of a PEM file; never its private key."""
    try:
        text = read_text(file)
        found = [read_certificate(each) for each in split_bundle(text) or (text,)]
    except CertificateError as error:
        raise CommandError(str(error)) from None
    rows: list[dict[str, str | list[str]]] = [
        {
            "subject": each.subject,
            "issuer": each.issuer,
            "hosts": sorted(each.hosts),
            "not_before": each.not_before.isoformat(),
            "not_after": each.not_after.isoformat(),
            "sha256": each.sha256,
        }
        for each in found
    ]
    if output == "json":
        print_json(rows)
        return
    for index, row in enumerate(rows):
        if index:
            click.echo()
        for field, value in row.items():
            text = ", ".join(value) or "-" if isinstance(value, list) else value
            click.echo(f"{field.replace('_', ' ') + ':':<12}{text}")
