"""Coordination data: Kafka's znodes and the stores that hold them."""
