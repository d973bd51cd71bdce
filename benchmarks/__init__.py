"""Side-by-side measurements with Apache Kafka."""
