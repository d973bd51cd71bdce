"""Whose directory is it?"""

import pytest

from barnabas_broker.log import meta_properties
from barnabas_broker.log.meta_properties import WrongOwnerError, check


def test_a_new_directory_is_marked() -> None:
    """Version 0 with broker and cluster id, as ZooKeeper mode writes it."""
    assert check(None, broker_id=3, cluster_id="abc") == (
        b"version=0\nbroker.id=3\ncluster.id=abc\n"
    )


def test_our_own_directory_is_left_as_it_is() -> None:
    """Apache's comment and order stay; nothing is rewritten without need."""
    data = b"#\n#Fri Nov 20 18:00:00 UTC 2026\ncluster.id=abc\nversion=0\nbroker.id=3\n"
    assert check(data, broker_id=3, cluster_id="abc") is None


def test_unknown_keys_are_kept() -> None:
    """A directory id a newer Apache has given stays when something is added."""
    data = b"version=0\nbroker.id=3\ndirectory.id=xyz\n"
    written = check(data, broker_id=3, cluster_id="abc")
    assert written is not None
    assert b"directory.id=xyz\n" in written
    assert b"cluster.id=abc\n" in written


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"version=0\nbroker.id=3\ncluster.id=other\n", ["cluster other", "cluster abc"]),
        (b"version=0\nbroker.id=9\ncluster.id=abc\n", ["broker 9", "broker 3"]),
        (b"version=0\nnode.id=9\ncluster.id=abc\n", ["broker 9", "broker 3"]),
        (b"version=1\nnode.id=3\ncluster.id=abc\n", ["version 1"]),
    ],
)
def test_another_owner_is_named(data: bytes, words: list[str]) -> None:
    """The message says whose it is and who we are."""
    with pytest.raises(WrongOwnerError) as caught:
        check(data, broker_id=3, cluster_id="abc")
    for word in words:
        assert word in str(caught.value)


def test_ids_can_be_read_before_they_are_known() -> None:
    """A broker without configured ids takes those of its directory."""
    data = b"version=0\nbroker.id=3\ncluster.id=abc\n"
    assert meta_properties.stored_cluster_id(data) == "abc"
    assert meta_properties.stored_broker_id(data) == 3
    assert meta_properties.stored_broker_id(b"version=0\n") is None
