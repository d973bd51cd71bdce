"""Who may read what, with an authorizer and without."""

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.authorizer import AllowAll
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.dispatch import Caller
from barnabas_broker.server.reading_rights import ReadingRights
from tests.broker.controller.embedded import Denying

CALLER = Caller("PLAINTEXT", "127.0.0.1", ANONYMOUS)


def test_each_is_asked_for_by_kind_and_name() -> None:
    """A group is no topic of the same name, and to read is what is asked for."""
    group = AclOperation.READ, ResourceType.GROUP, "a"
    topic = AclOperation.READ, ResourceType.TOPIC, "b"
    authorizer = Denying(group, topic)
    rights = ReadingRights(authorizer)
    assert not rights.unlimited
    assert [rights.of_group(CALLER, name) for name in "ab"] == [False, True]
    assert [rights.of_topic(CALLER, name) for name in "ab"] == [True, False]


def test_without_an_authorizer_all_may() -> None:
    """Nobody is asked then."""
    rights = ReadingRights(AllowAll())
    assert rights.unlimited
    assert rights.of_group(CALLER, "a")
    assert rights.of_topic(CALLER, "a")
