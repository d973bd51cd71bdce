"""The quickstarts, followed as a reader does."""
