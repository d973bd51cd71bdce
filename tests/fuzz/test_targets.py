"""Every kept input, and every one that once broke a promise, keeps all promises."""

from pathlib import Path

import pytest

from fuzz.oracle import BrokenPromiseError, promise
from fuzz.targets import CORPUS, FINDINGS, NAMES, target

#: All of the corpus together: it is part of every clone.
CORPUS_BYTES_MAX = 300_000


@pytest.mark.parametrize("name", NAMES)
def test_seeds_and_kept_inputs_pass(name: str) -> None:
    """What a target starts from, and what has led somewhere, breaks nothing."""
    subject = target(name)
    kept = sorted((CORPUS / name).iterdir())
    assert kept
    for data in [*subject.seeds(), *(path.read_bytes() for path in kept)]:
        subject.check(data)


@pytest.mark.parametrize("path", sorted(FINDINGS.glob("*/*")), ids=lambda path: path.name)
def test_inputs_of_past_findings_pass(path: Path) -> None:
    """Inputs that a fuzzer found are tests for ever."""
    target(path.parent.name).check(path.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_no_input_is_too_short(name: str) -> None:
    """Targets take anything, and little first."""
    for data in (b"", b"\0", b"\xff", b"\xff" * 3, bytes(64)):
        target(name).check(data)


def test_the_corpus_is_small() -> None:
    """Inputs with the same coverage are merged before they are kept."""
    sizes = [path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(sizes) <= CORPUS_BYTES_MAX


def test_a_broken_promise_says_what_it_was() -> None:
    """The words beside a promise are what a finding begins with."""
    promise(True, "kept")
    with pytest.raises(BrokenPromiseError, match="left' 7"):
        promise(False, "bytes left", 7)
