"""Requests: from a frame to the handler of its API, and from an answer to bytes."""
