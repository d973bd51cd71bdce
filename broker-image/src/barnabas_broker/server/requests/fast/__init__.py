"""The fast paths of common requests; the handlers serve all others."""
