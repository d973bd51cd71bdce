"""The states of a transaction, what each answers, and where each may lead."""

from enum import Enum
from typing import Final


class TransactionState(Enum):
    """What a transactional id is doing; the values are the names that ListTransactions shows."""

    EMPTY = "Empty"
    """The producer has its id and epoch, and no transaction.

    Action: partitions may be added; an end is answered INVALID_TXN_STATE; InitProducerId bumps
    the epoch; the id is forgotten when it was not used for long.
    Transition: the first partition is added: ONGOING; InitProducerId: EMPTY; expiry: DEAD; in
    protocol 2 an abort: PREPARE_ABORT.
    """

    ONGOING = "Ongoing"
    """A transaction is open.

    Action: partitions may be added; records may be written to those that were.
    Transition: EndTxn: PREPARE_COMMIT or PREPARE_ABORT; InitProducerId or the timeout:
    PREPARE_EPOCH_FENCE, and at once PREPARE_ABORT.
    """

    PREPARE_COMMIT = "PrepareCommit"
    """The transaction is committed, as soon as this is in the log; markers are being written.

    Action: markers are written until every partition has its own; the same end is answered
    CONCURRENT_TRANSACTIONS, the other one INVALID_TXN_STATE, everything else
    CONCURRENT_TRANSACTIONS.
    Transition: all markers are written: COMPLETE_COMMIT.
    """

    PREPARE_ABORT = "PrepareAbort"
    """The transaction is aborted; markers are being written.

    Action: as PREPARE_COMMIT.
    Transition: all markers are written: COMPLETE_ABORT.
    """

    COMPLETE_COMMIT = "CompleteCommit"
    """The last transaction was committed, and every partition knows.

    Action: a commit is answered without error once more, for its first answer may have been lost;
    otherwise as EMPTY.
    Transition: as EMPTY.
    """

    COMPLETE_ABORT = "CompleteAbort"
    """The last transaction was aborted, and every partition knows.

    Action: an abort is answered without error once more; otherwise as EMPTY.
    Transition: as EMPTY.
    """

    DEAD = "Dead"
    """The transactional id was not used for long, and is forgotten.

    Action: none; the id is out of the coordinator's reach, and may be used again.
    Transition: none.
    """

    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """The epoch was bumped to shut the producer out, before its transaction is aborted.

    Action: none; it is passed within one step, and never written.
    Transition: PREPARE_ABORT.
    """


_S = TransactionState

MAY_FOLLOW: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.DEAD}),
    _S.ONGOING: frozenset(
        {_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT, _S.PREPARE_EPOCH_FENCE}
    ),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.PREPARE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
    _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.DEAD}),
    _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.DEAD}),
    _S.DEAD: frozenset(),
}
"""Where each state may lead."""

MAY_FOLLOW_IN_PROTOCOL_2: Final = MAY_FOLLOW | {
    state: MAY_FOLLOW[state] | {_S.PREPARE_ABORT}
    for state in (_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT)
}
"""The same with an epoch for each transaction: a producer may abort what it never began (KIP-890),

and has an epoch then that nothing it sent before can reach.
"""

ENDING: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
"""The outcome is decided, and not every partition knows it yet."""

AT_REST: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
"""No transaction is open."""

NUMBERS: Final[dict[TransactionState, int]] = {
    _S.EMPTY: 0,
    _S.ONGOING: 1,
    _S.PREPARE_COMMIT: 2,
    _S.PREPARE_ABORT: 3,
    _S.COMPLETE_COMMIT: 4,
    _S.COMPLETE_ABORT: 5,
    _S.DEAD: 6,
    _S.PREPARE_EPOCH_FENCE: 7,
}
"""How states are written in `__transaction_state`."""

BY_NUMBER: Final = {number: state for state, number in NUMBERS.items()}
