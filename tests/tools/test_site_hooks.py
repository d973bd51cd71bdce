"""Links of the repository become links of the site."""

from __future__ import annotations

import pytest

from tools.site_hooks import PUBLISHED, ROOT, rewritten


@pytest.mark.parametrize(
    ("place", "link", "becomes"),
    [
        ("install.md", "[a](tasks/tools.md#kcat)", "[a](tasks/tools.md#kcat)"),
        ("tasks/tools.md", "[a](../../CONTRIBUTING.md)", "[a](../CONTRIBUTING.md)"),
        ("CONTRIBUTING.md", "[a](docs/ARCHITECTURE.md)", "[a](ARCHITECTURE.md)"),
        ("CONTRIBUTING.md", "![a](docs/pictures/x.svg)", "![a](pictures/x.svg)"),
        ("install.md", "[the file](../operator/x.py)", "the file"),
        ("cookbook/README.md", "[acks](acks.py)", "acks"),
        ("install.md", "[a](https://kafka.apache.org/x)", "[a](https://kafka.apache.org/x)"),
        ("install.md", "[a](#mirrors)", "[a](#mirrors)"),
    ],
)
def test_a_link_is_right_on_the_site(place: str, link: str, becomes: str) -> None:
    """A page moves with its links; what the site does not publish is plain text there."""
    assert rewritten(f"See {link}.", place) == f"See {becomes}.\n"


def test_code_is_left_alone() -> None:
    """A fenced block may hold what looks like a link."""
    text = "```sh\necho [a](../x.py)\n```\n"
    assert rewritten(text, "install.md") == text


def test_published_files_exist() -> None:
    """The site build would fail on a file that is gone."""
    assert [path for path in PUBLISHED if not (ROOT / path).is_file()] == []
