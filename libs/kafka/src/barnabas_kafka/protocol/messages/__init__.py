"""One module per API, request and response, every version."""
