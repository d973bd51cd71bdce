"""The benchmarks: that they work, not what they measure."""
