"""Pipelines on Spark: what needs no JVM here, the rest in `spark`."""
