"""A page is taken apart into files, commands and outputs, and what differs is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quickstarts import pages

TEXT = """# Page

```
only for reading
```

```python title="a.py"
print("hello")
```

```sh
X=1
```

```sh
python3 a.py; echo $X
```

```text
hello
1
```
"""


def test_blocks_have_their_meaning() -> None:
    """By language and title; a block without a language is for the reader."""
    page = pages.parse(TEXT)
    assert page.files == {"a.py": 'print("hello")\n'}
    assert page.commands == ["X=1\n", "python3 a.py; echo $X\n"]
    assert page.outputs == {1: "hello\n1\n"}


def test_a_page_that_is_wrong_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another output, and a command that fails."""
    monkeypatch.setattr(pages, "PAGES", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(TEXT)
    pages.follow("page.md", tmp_path, bootstrap="127.0.0.1:1", variables={})
    for right, wrong in (("hello\n1\n", "hello\n2\n"), ("X=1\n", "X=1; false\n")):
        page.write_text(TEXT.replace(right, wrong))
        with pytest.raises(AssertionError):
            pages.follow("page.md", tmp_path, bootstrap="127.0.0.1:1", variables={})
