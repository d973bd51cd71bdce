"""CRC-32C against published vectors."""

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas_kafka.records.crc import crc32c


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        (b"", 0x00000000),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
    ],
)
def test_published_vectors(data: bytes, checksum: int) -> None:
    """RFC 3720 B.4 and the check value of the Castagnoli polynomial."""
    assert crc32c(data) == checksum


def test_any_buffer_is_read_in_place() -> None:
    """The log checksums slices of the receive buffer; none of them may need a copy first."""
    buffer = bytearray(b"..123456789..")
    assert crc32c(memoryview(buffer)[2:11]) == crc32c(bytearray(b"123456789")) == 0xE3069283


def run(code: str) -> str:
    """What a Python prints that has imported nothing else."""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return out.stdout.strip()


def test_the_library_is_loaded_without_its_package() -> None:
    """Which would take time of every start; who imports the package itself still gets it."""
    code = (
        "import sys; from barnabas_kafka.records.crc import crc32c as ours\n"
        "assert not {'crc32c', 'importlib.metadata'} & set(sys.modules)\n"
        "import crc32c; print(ours(b'123456789') == crc32c.crc32c(b'123456789') == 0xE3069283)"
    )
    assert run(code) == "True"


def test_a_library_of_another_shape_is_imported_whole(tmp_path: Path) -> None:
    """Where it has no such compiled module it is a library all the same."""
    (tmp_path / "crc32c.py").write_text("def crc32c(data): return len(data)\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from barnabas_kafka.records.crc import crc32c; print(crc32c(b'123'))"
    )
    assert run(code) == "3"


def test_a_missing_library_is_named() -> None:
    """At import, not with the first batch."""
    code = (
        "import sys; sys.modules['crc32c'] = None\n"
        "try: import barnabas_kafka.records.crc\n"
        "except ImportError as error: print(error.name)"
    )
    assert run(code) == "crc32c"
