"""What the record walk costs, compiled and as plain Python, and a whole validation around it.

    .venv/bin/python -m benchmarks.records_walk

The walk is timed with the copy of the records section that the validator makes for it. Each figure
is the best of several rounds: a loop without waiting has no other noise than what slows it down.
"""

import importlib.util
import json
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from barnabas_broker.log.validator import ProduceRules, validate_produce
from barnabas_kafka.records import batch, walk
from barnabas_kafka.records.builder import build_batch

ROUNDS = 7
SECONDS_PER_ROUND = 0.05
BASE_TIMESTAMP = 1_700_000_000_000

#: Name, records in the batch, bytes of a value: a full 64 KiB batch of each, and one record.
SHAPES = [
    ("64 KiB of 1 KiB records", 63, 1000),
    ("64 KiB of 200 B records", 300, 190),
    ("64 KiB of 10 B records", 3200, 10),
    ("one record of 100 B", 1, 100),
]


def walk_from_source() -> ModuleType:
    """The walk as plain Python, whatever was built from it."""
    source = Path(batch.__file__).with_name("walk.py")
    spec = importlib.util.spec_from_file_location("walk_from_source", source)
    if spec is None or spec.loader is None:
        raise ImportError(f"{source} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def best_us(call: Callable[[], object]) -> float:
    """Microseconds of one call, the best of several rounds."""
    timer = timeit.Timer(call)
    once = timer.timeit(1)
    number = max(1, int(SECONDS_PER_ROUND / max(once, 1e-7)))
    return min(timer.repeat(ROUNDS, number)) / number * 1e6


def measure(count: int, value_size: int, modules: dict[str, ModuleType]) -> dict[str, float]:
    """Microseconds per batch: each walk, and the validation with the installed one."""
    data = bytearray(
        build_batch(
            [
                (BASE_TIMESTAMP + index // 4, b"key-%d" % index, b"x" * value_size, [])
                for index in range(count)
            ]
        )
    )
    view = memoryview(data)
    header = batch.parse_header(view)

    def walk_with(module: ModuleType) -> object:
        return module.walk(
            bytes(view[batch.HEADER_SIZE :]),
            0,
            index=0,
            count=count,
            base_timestamp=header.base_timestamp,
            oldest=0,
            newest=walk.LARGEST,
            key_required=True,
        )

    result = {
        name: best_us(lambda module=module: walk_with(module))  # type: ignore[misc]
        for name, module in modules.items()
    }
    rules = ProduceRules()
    result["validate"] = best_us(lambda: validate_produce(view, rules=rules, now_ms=BASE_TIMESTAMP))
    return result


def main() -> int:
    """Print a table, or JSON lines with --json."""
    modules = {"pure": walk_from_source()}
    if walk.COMPILED:
        modules["compiled"] = walk
    as_json = "--json" in sys.argv[1:]
    if not as_json:
        print(f"{'us per batch (us per record)':28}", *(f"{name:>20}" for name in modules), end="")
        print(f"{'validate_produce':>20}")
    for name, count, value_size in SHAPES:
        figures = measure(count, value_size, modules)
        if as_json:
            print(json.dumps({"shape": name, "records": count, "us_per_batch": figures}))
            continue
        cells = [f"{us:9.2f} ({us / count:8.4f})" for us in figures.values()]
        print(f"{name:28}", *(f"{cell:>20}" for cell in cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
