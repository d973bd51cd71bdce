"""Golden transcripts: how the high watermark moves, and what leader epochs save.

Each is told step by step by the broker's own decisions, with all copies after each step.
"""

from pathlib import Path

from barnabas_broker.replica.isr import InSyncRules
from tests.broker.replica.replicas import Partition


def written(name: str) -> list[str]:
    """The lines of a transcript in `transcripts/`."""
    return (Path(__file__).parent / "transcripts" / f"{name}.txt").read_text().splitlines()


def test_the_high_watermark_needs_two_rounds() -> None:
    """What a fetch brings is committed by the next; its answer, read before, does not say so."""
    partition = Partition((1, 2))
    partition.elect(1, (1, 2))
    partition.produce("a")
    partition.fetch(2)
    partition.fetch(2)
    partition.fetch(2)
    assert partition.transcript == written("the_high_watermark_needs_two_rounds")


def test_a_new_leader_moves_it() -> None:
    """First moment: who becomes leader alone counts what it has as committed at once."""
    partition = Partition((1, 2))
    partition.elect(1, (1, 2))
    partition.produce("a")
    partition.fetch(2)
    partition.down(1)
    partition.elect(2, (2,))
    assert partition.transcript == written("a_new_leader_moves_it")


def test_a_shrunken_isr_moves_it() -> None:
    """Second moment: who held it back has left the ISR."""
    partition = Partition((1, 2, 3))
    partition.elect(1, (1, 2, 3))
    partition.produce("a")
    partition.fetch(2)
    partition.fetch(2)
    partition.down(3)
    partition.now_ms = 40_000
    partition.isr_becomes((1, 2))
    assert partition.transcript == written("a_shrunken_isr_moves_it")


def test_an_append_moves_it() -> None:
    """Third moment: a leader without company commits what it writes."""
    partition = Partition((1, 2))
    partition.elect(1, (1,))
    partition.produce("a")
    assert partition.transcript == written("an_append_moves_it")


def test_a_fetch_moves_it() -> None:
    """Fourth moment: the last of the ISR asks for what comes after."""
    partition = Partition((1, 2, 3))
    partition.elect(1, (1, 2, 3))
    partition.produce("a")
    partition.fetch(2)
    partition.fetch(2)
    partition.fetch(3)
    partition.fetch(3)
    assert partition.transcript == written("a_fetch_moves_it")


def test_a_parked_fetch() -> None:
    """A fetch that finds nothing waits for an append; its own offset counts at once."""
    partition = Partition((1, 2))
    partition.elect(1, (1, 2))
    partition.produce("a")
    partition.fetch(2)
    parked = partition.send_fetch(2)
    partition.produce("b")
    partition.answer_parked(2, parked)
    partition.fetch(2)
    assert partition.transcript == written("a_parked_fetch")


def test_below_min_isr_it_stays() -> None:
    """Fewer replicas in sync than asked for: nothing is committed until there are enough again."""
    partition = Partition((1, 2), rules=InSyncRules(min_in_sync=2))
    partition.elect(1, (1,))
    partition.produce("a")
    partition.fetch(2)
    partition.fetch(2)
    partition.isr_becomes((1, 2))
    assert partition.transcript == written("below_min_isr_it_stays")


def test_loss_without_epochs() -> None:
    """Formats 0 and 1: who restarts cuts what it had, becomes leader, and the records are gone."""
    partition = Partition((1, 2), epochs=False)
    partition.elect(1, (1, 2))
    partition.produce("a")
    partition.produce("b")
    partition.fetch(2)
    partition.send_fetch(2)
    partition.down(2)
    partition.up(2)
    partition.agree(2)
    partition.down(1)
    partition.elect(2, (2,))
    partition.up(1)
    partition.fetch(1)
    assert partition.transcript == written("loss_without_epochs")


def test_divergence_without_epochs() -> None:
    """Formats 0 and 1: who lost its tail leads; the high watermarks agree, the records do not."""
    partition = Partition((1, 2), epochs=False)
    partition.elect(1, (1, 2))
    partition.produce("a")
    partition.produce("b")
    partition.fetch(2)
    partition.fetch(2)
    partition.lose_tail(2, keeps=1)
    partition.down(1, 2)
    partition.up(2)
    partition.elect(2, (2,))
    partition.produce("c")
    partition.up(1)
    partition.fetch(1)
    partition.fetch(1)
    assert partition.transcript == written("divergence_without_epochs")


def test_loss_with_epochs() -> None:
    """The same, asked by epoch (KIP-101): the follower keeps what the leader has too."""
    partition = Partition((1, 2), truncates_on_fetch=False)
    partition.elect(1, (1, 2))
    partition.produce("a")
    partition.produce("b")
    partition.fetch(2)
    partition.send_fetch(2)
    partition.down(2)
    partition.up(2)
    partition.agree(2)
    partition.down(1)
    partition.elect(2, (2,))
    partition.up(1)
    partition.fetch(1)
    assert partition.transcript == written("loss_with_epochs")


def test_divergence_with_epochs() -> None:
    """The same, asked by epoch: the follower learns where the leader parted, and cuts there."""
    partition = Partition((1, 2), truncates_on_fetch=False)
    partition.elect(1, (1, 2))
    partition.produce("a")
    partition.produce("b")
    partition.fetch(2)
    partition.fetch(2)
    partition.lose_tail(2, keeps=1)
    partition.down(1, 2)
    partition.up(2)
    partition.elect(2, (2,))
    partition.produce("c")
    partition.up(1)
    partition.fetch(1)
    partition.fetch(1)
    assert partition.transcript == written("divergence_with_epochs")


def test_loss_with_epochs_in_fetch() -> None:
    """The same, with divergence looked for in Fetch: nothing to ask, nothing to cut."""
    partition = Partition((1, 2), truncates_on_fetch=True)
    partition.elect(1, (1, 2))
    partition.produce("a")
    partition.produce("b")
    partition.fetch(2)
    partition.send_fetch(2)
    partition.down(2)
    partition.up(2)
    partition.agree(2)
    partition.down(1)
    partition.elect(2, (2,))
    partition.up(1)
    partition.fetch(1)
    assert partition.transcript == written("loss_with_epochs_in_fetch")


def test_divergence_with_epochs_in_fetch() -> None:
    """The same, with the diverging epoch in the answer to Fetch."""
    partition = Partition((1, 2), truncates_on_fetch=True)
    partition.elect(1, (1, 2))
    partition.produce("a")
    partition.produce("b")
    partition.fetch(2)
    partition.fetch(2)
    partition.lose_tail(2, keeps=1)
    partition.down(1, 2)
    partition.up(2)
    partition.elect(2, (2,))
    partition.produce("c")
    partition.up(1)
    partition.fetch(1)
    partition.fetch(1)
    assert partition.transcript == written("divergence_with_epochs_in_fetch")


def test_agreement_in_two_rounds() -> None:
    """A newest epoch that the leader has never seen: the one before is asked for (KIP-279)."""
    partition = Partition((1, 2), truncates_on_fetch=False)
    partition.elect(1, (1, 2))
    partition.produce("a")
    partition.fetch(2)
    partition.produce("b")
    partition.produce("c")
    partition.down(1)
    partition.elect(2, (2,))
    partition.produce("x")
    partition.down(2)
    partition.up(1)
    partition.elect(1, (1,))
    partition.produce("d")
    partition.up(2)
    partition.down(1)
    partition.elect(2, (2,))
    partition.produce("y")
    partition.down(2)
    partition.up(1)
    partition.elect(1, (1,))
    partition.produce("e")
    partition.up(2)
    partition.fetch(2)
    assert partition.transcript == written("agreement_in_two_rounds")
