"""Which of the eight levels applies, and who is counted together."""

from itertools import product

import pytest

from barnabas_broker.cluster.quota_entity import DEFAULT, QuotaEntity
from barnabas_broker.quota.precedence import limit_of, quota_of

#: From the most specific to the least, with what is counted together (Kafka's documentation).
LEVELS = [
    (QuotaEntity("u", "c"), ("u", "c")),
    (QuotaEntity("u", DEFAULT), ("u", "c")),
    (QuotaEntity("u"), ("u", "")),
    (QuotaEntity(DEFAULT, "c"), ("u", "c")),
    (QuotaEntity(DEFAULT, DEFAULT), ("u", "c")),
    (QuotaEntity(DEFAULT), ("u", "")),
    (QuotaEntity(None, "c"), (None, "c")),
    (QuotaEntity(None, DEFAULT), (None, "c")),
]


@pytest.mark.parametrize("present", list(product([False, True], repeat=8)))
def test_the_most_specific_applies(present: tuple[bool, ...]) -> None:
    """Of all 256 sets of levels; others' quotas make no difference."""
    limits = {QuotaEntity("other"): 1.0, QuotaEntity("other", "c"): 1.0, QuotaEntity("u", "d"): 1.0}
    wanted = None
    for number, (is_set, (entity, tags)) in enumerate(zip(present, LEVELS, strict=True)):
        if is_set:
            limits[entity] = 10.0 + number
            wanted = wanted or (tags, 10.0 + number)
    assert quota_of(limits, "u", "c") == wanted


def test_a_user_called_default_is_a_user() -> None:
    """No name is the default entity, and a default is nobody's name."""
    named = {QuotaEntity("<default>"): 5.0, QuotaEntity(None, "<default>"): 7.0}
    assert quota_of(named, "alice", "c") is None
    assert quota_of(named, "<default>", "c") == (("<default>", ""), 5.0)
    assert quota_of({QuotaEntity(DEFAULT): 3.0}, "<default>", "c") == (("<default>", ""), 3.0)
    assert quota_of(named, "bob", "<default>") == ((None, "<default>"), 7.0)


@pytest.mark.parametrize("client_id", [None, ""])
def test_a_client_without_an_id(client_id: str | None) -> None:
    """Quotas of client ids are not its; those of its user are."""
    assert quota_of({QuotaEntity(None, DEFAULT): 1.0}, "u", client_id) is None
    assert quota_of({QuotaEntity("u", DEFAULT): 1.0}, "u", client_id) is None
    assert quota_of({QuotaEntity("u"): 1.0}, "u", client_id) == (("u", ""), 1.0)


def test_limits_of_what_is_counted_together() -> None:
    """Nothing has no limit."""
    assert limit_of({QuotaEntity(DEFAULT): 1.0}, (None, "")) is None


def test_a_user_with_an_empty_name_is_a_user() -> None:
    """As of a certificate without a subject: it has the quotas of any user."""
    assert quota_of({QuotaEntity(DEFAULT): 1.0}, "", "c") == (("", ""), 1.0)
    assert quota_of({QuotaEntity(DEFAULT, DEFAULT): 1.0}, "", "c") == (("", "c"), 1.0)
    assert quota_of({QuotaEntity(None, "c"): 1.0}, "", "c") == ((None, "c"), 1.0)
