"""`barnabas pki`: an authority, its certificates, and what is shown of them."""

from __future__ import annotations

from pathlib import Path

from tests.broker.cli.conftest import run_command


def test_by_the_command_line(tmp_path: Path) -> None:
    """init, issue and show; what is shown has no key."""
    at = ("--dir", str(tmp_path / "pki"))
    made = run_command("pki", "init", *at)
    assert made.stdout.strip().endswith("pki/authority.pem")
    assert "for development" in made.stderr
    issued = run_command("pki", "issue", "broker", "--host", "localhost", *at).stdout.strip()
    shown = run_command("pki", "show", issued)
    assert "subject:    CN=broker" in shown.stdout
    assert "hosts:      localhost" in shown.stdout
    assert "PRIVATE" not in shown.stdout
    own, authority = run_command("pki", "show", issued, "--output", "json").json()
    assert (own["issuer"], authority["subject"]) == ("CN=Barnabas development",) * 2
    assert "exists" in run_command("pki", "issue", "broker", *at, fails=1).stderr
    assert "no host" in run_command("pki", "issue", "x", "--host", "ü", *at, fails=1).stderr
