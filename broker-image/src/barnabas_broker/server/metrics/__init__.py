"""What the broker counts, and its Prometheus format."""
