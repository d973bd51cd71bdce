"""Clients are kept between passes, and closed when they are too many and nobody uses them."""

from __future__ import annotations

import pytest

from barnabas_operator.handlers.clients import Clients


class Connected:
    """A client of a cluster."""

    def __init__(self, name: str) -> None:
        if name == "wrong":
            raise ValueError(name)
        self.name = name
        self.closed = False

    def close(self) -> None:
        """See Client."""
        assert not self.closed
        self.closed = True


def test_a_client_is_kept_for_the_next_pass() -> None:
    """As long as there is room; a pass has one client of a cluster."""
    clients = Clients(Connected, 2)
    with clients.lease() as client_of:
        first = client_of("a")
        assert client_of("a") is first
    with clients.lease() as client_of:
        assert client_of("a") is first
    assert not first.closed


def test_the_longest_unused_is_closed() -> None:
    """Its connections would otherwise stay open until brokers or the client find them idle."""
    clients = Clients(Connected, 2)
    made = {}
    for name in ("a", "b", "a", "c"):
        with clients.lease() as client_of:
            made[name] = client_of(name)
    assert [name for name, client in made.items() if client.closed] == ["b"]
    with clients.lease() as client_of:
        assert client_of("b") is not made["b"]


def test_one_that_a_pass_uses_stays_open() -> None:
    """However many other passes run at once; all are closed down to the limit afterwards."""
    clients = Clients(Connected, 1)
    with clients.lease() as one, clients.lease() as other:
        first, second = one("a"), other("a")
        assert first is second
        with clients.lease() as third:
            used = third("b")
        assert used.closed
        assert not first.closed
    assert not first.closed


def test_a_client_that_cannot_be_made_leaves_nothing_behind() -> None:
    """Its certificates cannot be used: the pass is told so, and the others go on."""
    clients = Clients(Connected, 1)
    with pytest.raises(ValueError, match="wrong"), clients.lease() as client_of:
        client_of("wrong")
    with clients.lease() as client_of:
        assert not client_of("a").closed


def test_one_that_cannot_be_closed_keeps_no_other_open() -> None:
    """Its event loop may be busy for too long: nobody else would ever close the others."""

    class Hanging(Connected):
        def close(self) -> None:
            super().close()
            if self.name == "hangs":
                raise TimeoutError

    clients = Clients(Hanging, 0)
    with pytest.raises(TimeoutError), clients.lease() as client_of:
        made = [client_of(name) for name in ("a", "hangs", "b")]
    assert all(each.closed for each in made)
