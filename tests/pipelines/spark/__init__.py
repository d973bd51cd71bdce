"""Pipelines on a real Spark against a real broker; runs in .venv-spark (`make pipelines`)."""
