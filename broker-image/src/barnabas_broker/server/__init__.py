"""Sockets, sessions, dispatch and the life of a broker process."""
