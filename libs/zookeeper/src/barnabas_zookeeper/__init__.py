"""The ZooKeeper data model, and a single process that serves it for development."""
