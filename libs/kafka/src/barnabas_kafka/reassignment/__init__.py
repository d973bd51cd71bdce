"""Where replicas should lie: plans of moves, their throttles, and Kafka's files that say them."""
