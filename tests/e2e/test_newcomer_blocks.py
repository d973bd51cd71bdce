"""What a newcomer is told to type is found, and a command that fails is not overlooked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
    told = play(blocks(document, "README.md"), clone=tmp_path, variables=variables)
    assert "hello /usr/local/bin:/usr/bin:/bin\n" in told
    assert "VIRTUAL_ENV" not in variables


@pytest.mark.parametrize("text", ["false\necho on\n", "false | true\n", "echo $UNDEFINED\n"])
def test_a_command_that_fails_is_named(tmp_path: Path, text: str) -> None:
    """With the document and the line; what follows is not played."""
    with pytest.raises(PlayError, match=r"==> README\.md:3") as raised:
        play(played(text), clone=tmp_path, variables=environment(tmp_path, {}))
    assert "\non\n" not in str(raised.value)
