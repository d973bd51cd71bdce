"""What the brokers of a cluster count, as Prometheus would see it."""

import json
from functools import partial
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.running import Cluster
from tests.waiting import ANSWER, ATTEMPT_S, wait_for

SETTINGS = {"barnabas.admin.listener": "127.0.0.1:0"}
"""What brokers need that are asked for their metrics."""


def metric(cluster: Cluster, broker: int, name: str, **labels: str) -> float:
    """The sum of a broker's samples of that name which have these labels."""
    ready = json.loads((cluster.brokers[broker].directory / "ready.json").read_text())
    text = wait_for(
        f"the metrics of broker {broker}",
        partial(_get, f"{ready['admin']}/metrics"),
        within=ANSWER,
        retry=(OSError,),
    )
    families = text_string_to_metric_families(text)
    samples = [sample for family in families for sample in family.samples]
    wanted = labels.items()
    return sum(it.value for it in samples if it.name == name and wanted <= it.labels.items())


def _get(url: str) -> str:
    with urlopen(url, timeout=ATTEMPT_S) as answer:
        text: str = answer.read().decode()
    return text
