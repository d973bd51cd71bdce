"""The integer type of compiled modules when it runs from source."""

from barnabas_kafka import native


def test_i64_is_int_at_run_time() -> None:
    """Running from source needs no package for the type and converts like int."""
    assert native.i64 is int
