"""The ZooKeeper data model, without a network."""
