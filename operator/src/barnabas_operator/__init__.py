"""The operator of Barnabas: custom resources in, a running cluster out."""

__version__ = "0.1.0"
"""Images carry it as tag; the distribution that brought this package may be called otherwise."""
