"""Tests of the tools that have Kafka's names."""
