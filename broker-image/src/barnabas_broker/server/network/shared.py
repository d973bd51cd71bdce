"""What all sessions of a broker share: memory, and iterations of the event loop."""

from dataclasses import dataclass, field
from typing import Final

from barnabas_broker.server.network.long_requests import LongRequests
from barnabas_broker.server.network.response_coalescing import ResponseCoalescer
from barnabas_broker.server.process.cooperative_scheduler import IterationBudget, RunQueue
from barnabas_broker.server.transport.counters import Counters
from barnabas_broker.server.transport.memory_pool import MemoryPool
from barnabas_broker.server.transport.send_buffers import SendBuffers
from barnabas_broker.server.transport.write_readiness import WriteReadiness

ITERATION_BYTES: Final = 1 << 20
"""How much of all large requests is received in one iteration of the loop."""

MOVED_AT_ONCE: Final = 512 << 10
"""How much of a request is copied to a larger buffer at once: some tenths of a millisecond, as its
pages are new to the process."""

LARGE_REQUEST_BYTES: Final = 256 << 10
"""Requests above this are received one after the other while several arrive, and each is served in
an iteration of its own then."""

RECEIVED_AT_ONCE: Final = 256 << 10
"""How much of a large request is received at once while several arrive."""

UNBUDGETED_BYTES: Final = 4 << 10
"""How much is received of a large request, which cannot be put off any more, beyond that."""

FLOOD_READ_BYTES: Final = 64 << 10
"""What is received at once from a client that sends small requests faster than they are served:
they wait in the run queue either way, and others would wait for a megabyte to be copied."""

FLUSH_BYTES: Final = 64 << 10
"""A response this large is sent before the next request is served: a megabyte of requests for
large responses must not become gigabytes of responses."""

LAST_REQUESTS_S: Final = 30.0
"""How long requests are kept whose client has closed, behind one that still waits."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all sessions of a broker draw from, and where they report misconduct."""

    memory: MemoryPool
    output: SendBuffers
    counters: Counters
    writability: WriteReadiness
    run_queue: RunQueue
    burst: ResponseCoalescer
    receiving: RunQueue = field(default_factory=RunQueue)
    """Sessions that go on receiving a large request."""
    serving: LongRequests = field(default_factory=LongRequests)
    """Sessions with a long request to be served."""
    iteration_bytes: IterationBudget = field(
        default_factory=lambda: IterationBudget(ITERATION_BYTES)
    )
