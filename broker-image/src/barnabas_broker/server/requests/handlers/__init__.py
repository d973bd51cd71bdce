"""One module per API: the version range it serves and its handler."""
