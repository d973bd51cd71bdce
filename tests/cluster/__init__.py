"""Several brokers, one ensemble, and clients that remember everything."""
