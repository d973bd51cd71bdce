"""What kind clusters need, as far as packages bring it."""

from tools import kind_needs


def test_only_what_debian_has_is_installed() -> None:
    """Helm and kubectl are nobody's package here."""
    assert kind_needs.packages_of(["docker", "helm"]) == ["docker.io", "iptables"]
