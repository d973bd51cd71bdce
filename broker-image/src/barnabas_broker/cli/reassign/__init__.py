"""`barnabas reassign`: partitions to other brokers."""
