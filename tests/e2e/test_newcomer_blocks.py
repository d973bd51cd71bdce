"""What a newcomer is told to type is found, and a command that fails is not overlooked."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from e2e.commands import ROOT
from e2e.newcomer import bases, container, times
from e2e.newcomer.blocks import Block, blocks
from e2e.newcomer.play import PlayError, environment, play

DOCUMENT = """\
# Title

```sh
export GREETING=hello
```

```python
print("not a command")
```

```
read this
```

```sh
echo "$GREETING $PATH"
```
"""


def played(text: str) -> list[Block]:
    """A block of a document."""
    return [Block("README.md", 3, text)]


def test_shell_blocks_with_their_lines(tmp_path: Path) -> None:
    """Other languages and text are for reading."""
    document = tmp_path / "README.md"
    document.write_text(DOCUMENT)
    assert blocks(document, "README.md") == [
        Block("README.md", 4, "export GREETING=hello\n"),
        Block("README.md", 16, 'echo "$GREETING $PATH"\n'),
    ]


def test_blocks_share_a_shell_of_a_fresh_login(tmp_path: Path) -> None:
    """A later one has what an earlier one exported, and nothing of this process."""
    document = tmp_path / "README.md"
    document.write_text(DOCUMENT)
    variables = environment(tmp_path, os.environ | {"VIRTUAL_ENV": "/somewhere", "PATH": "/no"})
    reported = play(blocks(document, "README.md"), clone=tmp_path, variables=variables)
    assert "hello /usr/local/bin:/usr/bin:/bin\n" in reported
    assert "VIRTUAL_ENV" not in variables


@pytest.mark.parametrize("text", ["false\necho on\n", "false | true\n", "echo $UNDEFINED\n"])
def test_a_command_that_fails_is_named(tmp_path: Path, text: str) -> None:
    """With the document and the line; what follows is not played."""
    with pytest.raises(PlayError, match=r"==> README\.md:3") as raised:
        play(played(text), clone=tmp_path, variables=environment(tmp_path, {}))
    assert "\non\n" not in str(raised.value)


def test_dockerfile_and_certificates_of_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Dockerfile, and the administrator's certificates, which a login is told of, if any."""
    monkeypatch.setattr(bases, "AUTHORITIES", tmp_path)
    assert bases.trust() == []
    (tmp_path / "ours.crt").write_text("a certificate")
    assert f"--env=SSL_CERT_FILE={bases.BUNDLE}" in bases.trust()
    with tarfile.open(fileobj=io.BytesIO(bases.context(container.DOCKERFILE))) as archive:
        assert archive.getnames() == ["Dockerfile", "authorities", "authorities/ours.crt"]


def test_every_quickstart_has_its_packages() -> None:
    """Those that a clean machine can follow; Spark's is a download of 450 MB."""
    pages = {path.name for path in (ROOT / container.QUICKSTARTS).glob("*.md")}
    assert pages - {"README.md", "spark.md"} == set(container.PACKAGES)


def test_size_counts_a_file_once(tmp_path: Path) -> None:
    """Hard links, as uv makes them of its cache, are one file."""
    (tmp_path / "a").write_bytes(b"x" * 1_000_000)
    once = times.size_mb(tmp_path)
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    assert times.size_mb(tmp_path) == once == pytest.approx(1.0, rel=0.01)


def test_the_clone_is_the_newcomers(tmp_path: Path) -> None:
    """Directories as well as files, and each of them before what is in it."""
    with tarfile.open(fileobj=io.BytesIO(container.checkout())) as archive:
        entries = archive.getmembers()
    assert {(each.uid, each.gid) for each in entries} == {(container.UID, container.UID)}
    known = {"."}
    for each in entries:
        name = Path(each.name)
        assert str(name.parent) in known
        known.add(str(name))
    assert (container.copy_into(tmp_path) / "Makefile").read_bytes() == (
        ROOT / "Makefile"
    ).read_bytes()
