"""What is baked into the images besides the packages."""
