"""What clients moved in and out of a topic, as far as this broker served it."""


class BrokerTopicStats:
    """Counters of one topic since the broker started; its partitions share them.

    Bytes are those of record batches as they are stored. A request that touches several partitions
    of the topic counts once for each.
    """

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "fetches",
        "fetches_failed",
        "produces",
        "produces_failed",
        "records_in",
    )

    def __init__(self) -> None:
        self.records_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produces = 0
        self.produces_failed = 0
        self.fetches = 0
        self.fetches_failed = 0
