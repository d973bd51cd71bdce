"""What the broker counts, and how it is told to Prometheus."""
