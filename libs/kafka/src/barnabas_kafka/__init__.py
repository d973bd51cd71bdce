"""What is true of Kafka whoever speaks it: protocol, records, settings."""
