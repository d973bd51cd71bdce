"""What clients use of their quotas: `kafka.server:type=Produce,user=…,client-id=…` and the others.

Only of clients that have a quota, and of no more than `CLIENTS_MAX` for each kind: client ids are
the clients' to invent.
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from barnabas_broker.server.requests.client_quotas import ClientQuotas

CLIENTS_MAX: Final = 1000


def quotas(client_quotas: ClientQuotas) -> Iterator[Metric]:
    """A family for what is used, and one for throttle times, of each kind."""
    now_ms = client_quotas.now_ms()
    for kind, used, words, manager in (
        ("produce", "byte_rate", "Bytes of requests in a second.", client_quotas.produce),
        ("fetch", "byte_rate", "Bytes of responses in a second.", client_quotas.fetch),
        ("request", "request_time", "Percent of a thread's time.", client_quotas.request),
        ("controllermutation", "tokens", "Partitions that may change.", client_quotas.mutations),
    ):
        labels = ["user", "client_id"]
        usage = GaugeMetricFamily(f"kafka_server_{kind}_{used}", words, labels=labels)
        throttled = GaugeMetricFamily(
            f"kafka_server_{kind}_throttle_time",
            "Milliseconds for which the last request was throttled.",
            labels=labels,
        )
        for (user, client_id), sensor in manager.in_use(CLIENTS_MAX):
            tags = user or "", client_id
            usage.add_metric(tags, sensor.measured(now_ms))
            throttled.add_metric(tags, sensor.throttle_ms)
        yield usage
        yield throttled
