"""Which segments become one."""

from barnabas_broker.log.cleaner.grouping import Source, groups


def bases(*segments: Source, size: int = 100, index: int = 100, end: int = 1000) -> list[list[int]]:
    found = groups(segments, segment_bytes=size, index_bytes=index, upper_bound=end)
    return [[one.base_offset for one in group] for group in found]


def test_files_bound_a_group() -> None:
    """Neighbours are taken together while log and indexes stay within one segment's limits."""
    small = [Source(base, 40, 8, 12) for base in (0, 10, 20, 30, 40)]
    assert bases(*small) == [[0, 10], [20, 30], [40]]
    assert bases(*small, size=1000, index=24) == [[0, 10], [20, 30], [40]]
    assert bases(*small, size=1000, index=8) == [[0], [10], [20], [30], [40]]
    assert bases(*small, size=10) == [[0], [10], [20], [30], [40]], "one that is too large is alone"


def test_offsets_bound_a_group() -> None:
    """An index tells offsets in 31 bits; an empty segment has none to tell."""
    far = 1 << 31
    segments = [Source(0, 1, 0, 0), Source(10, 1, 0, 0)]
    assert bases(*segments, end=far) == [[0, 10]]
    assert bases(*segments, end=far + 1) == [[0], [10]]
    assert bases(Source(0, 0, 0, 0), Source(far, 1, 0, 0), end=far + 9) == [[0], [far]]
    assert bases(Source(0, 1, 0, 0), Source(far, 0, 0, 0), end=far + 9) == [[0, far]]
    assert bases() == []
