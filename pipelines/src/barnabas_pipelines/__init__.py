"""Streaming pipelines from Kafka topics to files, on Spark."""
