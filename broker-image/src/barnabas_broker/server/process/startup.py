"""What can stop a broker from starting, said in one line."""


class StartupError(Exception):
    """The broker cannot start; the message says what is wrong, where, and what to do."""
