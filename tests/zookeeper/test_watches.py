"""Who hears of what, once or always."""

import pytest

from barnabas_zookeeper.tree import Event, EventType
from barnabas_zookeeper.watches import Kind, Watches

CREATED, DELETED = EventType.CREATED, EventType.DELETED
CHANGED, CHILDREN = EventType.DATA_CHANGED, EventType.CHILDREN_CHANGED


@pytest.mark.parametrize(
    ("kind", "event", "heard"),
    [
        (Kind.DATA, Event(CREATED, "/a/b"), True),
        (Kind.DATA, Event(CHANGED, "/a/b"), True),
        (Kind.DATA, Event(DELETED, "/a/b"), True),
        (Kind.DATA, Event(CHILDREN, "/a/b"), False),
        (Kind.DATA, Event(CHANGED, "/a/b/c"), False),
        (Kind.CHILDREN, Event(CHILDREN, "/a/b"), True),
        (Kind.CHILDREN, Event(DELETED, "/a/b"), True),
        (Kind.CHILDREN, Event(CHANGED, "/a/b"), False),
        (Kind.PERSISTENT, Event(CHILDREN, "/a/b"), True),
        (Kind.PERSISTENT, Event(CHANGED, "/a/b"), True),
        (Kind.PERSISTENT, Event(CREATED, "/a/b/c"), False),
        (Kind.RECURSIVE, Event(CREATED, "/a/b/c/d"), True),
        (Kind.RECURSIVE, Event(DELETED, "/a/b"), True),
        (Kind.RECURSIVE, Event(CHILDREN, "/a/b"), False),
        (Kind.RECURSIVE, Event(CHANGED, "/a/bb"), False),
    ],
)
def test_events_of_each_watch_type(kind: Kind, event: Event, heard: bool) -> None:
    """Watching /a/b in each of the four ways; only persistent ones hear twice."""
    watches: Watches[str] = Watches()
    watches.add("me", kind, "/a/b")
    assert watches.fire(event) == (["me"] if heard else [])
    stays = heard and kind in (Kind.PERSISTENT, Kind.RECURSIVE)
    assert watches.fire(event) == (["me"] if stays else [])


def test_each_watcher_gets_an_event_once() -> None:
    """A deletion is told to those who watch data and to those who watch children, once each."""
    watches: Watches[str] = Watches()
    for kind in Kind:
        watches.add("me", kind, "/a")
    watches.add("you", Kind.CHILDREN, "/a")
    assert watches.fire(Event(DELETED, "/a")) == ["me", "you"]


def test_watches_go_with_their_connection() -> None:
    """Nothing is kept of somebody who left; others stay."""
    watches: Watches[str] = Watches()
    watches.add("me", Kind.DATA, "/a")
    watches.add("you", Kind.DATA, "/a")
    watches.forget("me")
    assert len(watches) == 1
    assert watches.fire(Event(CHANGED, "/a")) == ["you"]
    assert len(watches) == 0
    watches.forget("nobody")


def test_a_watch_is_taken_back() -> None:
    """Removing what is there ends it; what is not there is no error."""
    watches: Watches[str] = Watches()
    watches.add("me", Kind.DATA, "/a")
    assert watches.has("me", Kind.DATA, "/a")
    watches.remove("me", Kind.DATA, "/a")
    watches.remove("me", Kind.DATA, "/a")
    assert not watches.has("me", Kind.DATA, "/a")
