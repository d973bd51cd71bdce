"""Side-by-side measurements with Apache Kafka: same machine, same clients, interleaved runs."""
