"""The operator's metrics."""

from __future__ import annotations

from barnabas_operator.handlers.health import Health
from barnabas_operator.handlers.metrics import Metrics
from barnabas_operator.handlers.work_queue import WorkQueue
from barnabas_operator.kube import KubeError
from barnabas_operator.reconcile.reconciler import Key

A = Key("ns", "a")


def test_reconciliations_are_counted_by_cluster_and_gone_with_it() -> None:
    """So the number of series stays that of the clusters."""
    metrics = Metrics(Health())
    metrics.reconciled(A, 0.2, None)
    metrics.reconciled(A, 0.2, KubeError(0, "unreachable"))
    text = metrics.text().decode()
    for result in ("success", "error"):
        series = f'cluster="a",namespace="ns",result="{result}"}} 1.0'
        assert f"barnabas_operator_reconciliations_total{{{series}" in text
    assert 'barnabas_operator_last_success_timestamp_seconds{cluster="a"' in text
    metrics.forgotten(A)
    assert 'cluster="a"' not in metrics.text().decode()


def test_steps_are_counted_by_type_and_result() -> None:
    """How often pods are replaced, and how often the API server refuses something."""
    metrics = Metrics(Health())
    metrics.count_step("DeletePod", "applied")
    metrics.count_step("DeletePod", "refused")
    text = metrics.text().decode()
    for result in ("applied", "refused"):
        series = f'result="{result}",step="DeletePod"}} 1.0'
        assert f"barnabas_operator_steps_total{{{series}" in text


def test_the_queue_is_shown() -> None:
    """Its depth, and how long clusters wait and run."""
    metrics, queue = Metrics(Health()), WorkQueue()
    queue.add(A, 1.0)
    metrics.beat(queue, 4.0)
    text = metrics.text().decode()
    assert "barnabas_operator_workqueue_depth 1.0" in text
    assert "barnabas_operator_workqueue_longest_wait_seconds 3.0" in text


def test_a_resync_makes_ready_and_counts_failed_namespaces() -> None:
    """A namespace that cannot be listed is shown, and does not keep the operator from work."""
    health = Health()
    metrics = Metrics(health)
    metrics.namespaces_failed({"gone": KubeError(403, "forbidden")})
    assert health.synced
    assert "barnabas_operator_namespaces_failed 1.0" in metrics.text().decode()


def test_ends_of_certificates_are_shown_while_there_are_certificates() -> None:
    """They go with the last listener with TLS, and with the cluster."""
    metrics = Metrics(Health())
    series = 'certificate_expiry_timestamp_seconds{certificate="broker",cluster="a"'
    metrics.expiries("ns", "a", {"broker": 2e9})
    assert f'{series},namespace="ns"}} 2e+09' in metrics.text().decode()
    metrics.expiries("ns", "a", {})
    assert series not in metrics.text().decode()
    metrics.expiries("ns", "a", {"broker": 2e9})
    metrics.forgotten(A)
    assert series not in metrics.text().decode()


def test_ends_of_users_certificates_go_with_user_and_cluster() -> None:
    """They have a series of their own: there may be many users."""
    metrics = Metrics(Health())
    metrics.expiries("ns", "a", {"broker": 2e9})
    metrics.user_expiries("ns", "a", {"billing": 1e9, "orders": 2e9})
    metrics.user_expiries("ns", "a", {"billing": 1e9})
    series = 'user_certificate_expiry_timestamp_seconds{cluster="a",namespace="ns",user='
    text = metrics.text().decode()
    assert f'{series}"billing"}} 1e+09' in text
    assert f'{series}"orders"' not in text
    metrics.forgotten(A)
    assert "expiry_timestamp_seconds{" not in metrics.text().decode()


def test_the_end_of_a_certificate_goes_with_its_listener() -> None:
    """An alert would follow for one that nobody uses, and nobody could end it."""
    metrics = Metrics(Health())
    metrics.expiries("ns", "a", {"broker": 2e9, "listener-public": 1e9})
    metrics.expiries("ns", "b", {"listener-public": 1e9})
    metrics.expiries("ns", "a", {"broker": 2e9})
    text = metrics.text().decode()
    series = 'expiry_timestamp_seconds{certificate="listener-public",cluster='
    assert f'{series}"b"' in text
    assert f'{series}"a"' not in text
    assert 'expiry_timestamp_seconds{certificate="broker",cluster="a"' in text
