"""Brokers for other projects' tests: a plain context manager and the fixtures built on it.

`Broker` works in any test runner, script or notebook; `plugin` wraps it for pytest. Neither needs a
Kafka client library: topics are made with Barnabas' own protocol code.
"""

from barnabas_broker.testing.broker import Broker, BrokerError

__all__ = ["Broker", "BrokerError"]
