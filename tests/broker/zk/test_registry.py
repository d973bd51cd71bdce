"""Finding brokers in ZooKeeper; that they are found is tested with Kafka's tools on a real one."""

import pytest

from barnabas_broker.zk.registry import RegistryError, brokers_in


@pytest.mark.parametrize("connect", ["127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2/chroot"])
def test_nobody_answers(connect: str) -> None:
    """In bounded time, and with what to type instead."""
    with pytest.raises(RegistryError, match="--bootstrap-server"):
        brokers_in(connect)
