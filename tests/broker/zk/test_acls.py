"""Which znodes the world may read, by Kafka's rule."""

import pytest

from barnabas_broker.zk.acls import Protection, protection


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/consumers", Protection.NONE),
        ("/consumers/group", Protection.READABLE),
        ("/", Protection.READABLE),
        ("/brokers/ids/1", Protection.READABLE),
        ("/config/topics/t", Protection.READABLE),
        ("/config/users", Protection.PRIVATE),
        ("/config/users/alice", Protection.PRIVATE),
        ("/config/brokers/<default>", Protection.PRIVATE),
        ("/config/brokers-of-old", Protection.PRIVATE),
        ("/delegation_token", Protection.READABLE),
        ("/delegation_token/tokens/id", Protection.PRIVATE),
    ],
)
def test_who_may_read(path: str, expected: Protection) -> None:
    """Secrets are for their creator, and /consumers itself is for everybody."""
    assert protection(path) is expected
