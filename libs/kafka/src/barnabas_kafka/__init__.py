"""What is true of Kafka for brokers and clients alike: protocol, records, settings."""
