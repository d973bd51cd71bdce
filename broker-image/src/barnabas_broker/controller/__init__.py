"""What the controller decides: topics, placement, configs."""
