"""The benchmarks' client processes."""
