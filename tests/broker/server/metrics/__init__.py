"""What the broker counts."""
