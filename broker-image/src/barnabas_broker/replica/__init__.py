"""Partitions as replicas: leadership, high watermark, waiting requests."""
