"""Client processes of the benchmarks, each run as ``python -m benchmarks.workers.<name> SPEC``."""
