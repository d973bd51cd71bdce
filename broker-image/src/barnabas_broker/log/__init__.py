"""The partition log: Kafka's data directory."""
