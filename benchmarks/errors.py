"""What goes wrong in a benchmark."""


class BenchmarkError(Exception):
    """A case could not be measured; the text says why. The other cases go on."""
