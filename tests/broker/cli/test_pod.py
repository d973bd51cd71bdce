"""What a broker takes from its pod."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas_broker.cli.errors import InputError
from barnabas_broker.cli.pod import TERMINATED, expanded, from_file, rack_in, wait_for_rack

ENVIRONMENT = {"POD_INDEX": "2", "HOST_IP": "fd00::1", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("broker.id={POD_INDEX}", "broker.id=2"),
        ("A://{HOST_IP}:{32094+POD_INDEX},B://b:9092", "A://fd00::1:32096,B://b:9092"),
        ("a={}", "a={}"),
        ("a={lower} $POD_INDEX $(id)", "a={lower} $POD_INDEX $(id)"),
    ],
)
def test_places_are_filled_in(text: str, result: str) -> None:
    """Variables and numbers counted on from; nothing else means anything."""
    assert expanded(text, ENVIRONMENT) == result


@pytest.mark.parametrize("text", ["{POD_NAME}", "{EMPTY}", "{1+HOST_IP}"])
def test_a_place_that_cannot_be_filled_in_is_refused(text: str) -> None:
    """A broker never starts with half an address."""
    with pytest.raises(InputError, match=r"not set|not a number"):
        expanded(text, ENVIRONMENT)


def test_the_first_file_with_a_rack_counts(tmp_path: Path) -> None:
    """The label's before the annotation's; a label that is not there is an empty file."""
    label, annotation = tmp_path / "topology", tmp_path / "rack"
    assert rack_in([label, annotation]) == ""
    label.write_text("")
    annotation.write_text("west\n")
    assert rack_in([label, annotation]) == "west"
    label.write_text("east")
    assert rack_in([label, annotation]) == "east"


def test_the_rack_may_come_late(tmp_path: Path) -> None:
    """It is looked for again and again."""
    file = tmp_path / "rack"
    waits: list[float] = []

    def sleep(delay: float) -> None:
        waits.append(delay)
        if len(waits) == 3:
            file.write_text("east")

    assert wait_for_rack([file], sleep=sleep) == "east"
    assert len(waits) == 3


def test_a_pod_that_is_deleted_while_it_waits_ends_at_once(tmp_path: Path) -> None:
    """Not with 0: the broker's container must not start in a pod that terminates."""
    command = [sys.executable, "-c", "from barnabas_broker.cli.entry import main; main()"]
    arguments = ["broker", "wait-for-rack", str(tmp_path / "rack")]
    with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("waiting for the rack")
        process.send_signal(signal.SIGTERM)
    assert process.returncode == TERMINATED == 143


def test_a_setting_is_what_its_file_holds(tmp_path: Path) -> None:
    """Without the line end; a file that is not there is named."""
    file = tmp_path / "0"
    file.write_text("PLAIN://{POD_NAME}:9092\n")
    assert (
        from_file(f"advertised.listeners={file}") == "advertised.listeners=PLAIN://{POD_NAME}:9092"
    )
    for wrong in (f"a={tmp_path / 'none'}", f"a={tmp_path}", "a", "=b", "a="):
        with pytest.raises(InputError, match=f"--set-file {wrong}"):
            from_file(wrong)
