"""Skips the pass of a cluster in which nothing has changed since one that had nothing to do.

A settled pass follows from the API's objects and the brokers' answers alone. Watches and resyncs
count the changes of the objects; the brokers are asked in every pass. Where either is not as it was
the pass is made, and reads everything it acts on from the API server: what is cached never decides
what is done, only that nothing is. After a while a pass is made in any case.

A cluster that waits for something has its next pass soon. While no object changes that becomes a
tenth of the time for which it waits, up to the resync: a broker that is away for a day is no load.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from barnabas_operator.brokers import Brokers, BrokersError, Endpoint
from barnabas_operator.kube import SECRETS, TOPICS, USERS, KubeError
from barnabas_operator.plan.observed import ClusterView
from barnabas_operator.plan.passwords import SecretView
from barnabas_operator.plan.topics import TopicView
from barnabas_operator.plan.users import UserView
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.reconciler import RESYNC_S, SOON_S, Key, reconcile

# A whole pass after that, whatever the cache says.
FULL_PASS_S: Final = 600.0

# Of the time since the last change of an object, until the next check of what is waited for.
BACKOFF_FACTOR: Final = 0.1

# The last changes of a cluster's objects, and of those that may be any cluster's.
Revision = tuple[int, int]
Answer = Mapping[str, TopicView | BrokersError]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    """What a settled pass was made from."""

    revision: Revision
    endpoint: Endpoint
    view: ClusterView
    # The topics that resources name, and what the brokers said of those that exist.
    named: frozenset[str]
    topics: Answer
    # What the brokers said of the users that resources manage.
    users: Mapping[str, UserView]
    # The dynamic settings of all brokers; None where the pass did not ask.
    config: Mapping[str, str] | None
    # The versions of the users' Secrets, which are not watched, by namespace and name.
    secrets: Mapping[tuple[str, str], str]
    until: float


class SteadyClusters:
    """Makes passes, or finds that there is nothing to do.

    `revision` is given namespace and cluster; None where it is not known what has changed. Passes
    of one cluster follow one another; those of several may run at once.
    """

    def __init__(
        self,
        revision: Callable[[str, str], Revision | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._revision = revision
        self._clock = clock
        self._settled: dict[Key, _Settled] = {}
        # Since when each cluster has the revision that its last pass began with.
        self._since: dict[Key, tuple[Revision | None, float]] = {}

    def reconcile(self, key: Key, context: Context) -> float:
        """One pass; returns the seconds until the next one is due. Raises KubeError."""
        # Before anything is read: what changes from now on is another revision.
        revision = self._revision(key.namespace, key.cluster)
        before = self._settled.pop(key, None)
        if before is not None and self._is_as_before(key, before, revision, context):
            self._settled[key] = before
            return RESYNC_S
        recorder = _Recorder(context.brokers)
        outcome = reconcile(key, replace(context, brokers=recorder.connect))
        backoff_s, again_in = self._backoff_s(key, revision), outcome.again_in
        if again_in == SOON_S:
            again_in = max(again_in, backoff_s)
        known = all(
            context.index(kind, key.namespace, key.cluster) is not None for kind in (TOPICS, USERS)
        )
        view, endpoint = recorder.view, recorder.endpoint
        if not (outcome.settled and revision and known):
            return again_in
        if view is not None and endpoint is not None:
            self._settled[key] = _Settled(
                revision=revision,
                endpoint=endpoint,
                view=view,
                named=outcome.topics,
                topics=recorder.topics,
                users=recorder.users,
                config=recorder.config,
                secrets=outcome.secrets,
                until=self._clock() + min(_full_pass_s(), outcome.settled_for_s),
            )
        return again_in

    def _backoff_s(self, key: Key, revision: Revision | None) -> float:
        """Seconds until the next pass at the earliest; changes have events."""
        before, since = self._since.get(key, (None, 0.0))
        if revision is None or revision != before:
            since = self._clock()
            self._since[key] = revision, since
        return min((self._clock() - since) * BACKOFF_FACTOR, RESYNC_S)

    def forget(self, gone: Callable[[Key], bool]) -> None:
        """Drop the clusters for which it holds."""
        for known in (self._settled, self._since):
            # A copy: passes add to them at the same time.
            for key in filter(gone, list(known)):
                known.pop(key, None)

    def _is_as_before(
        self, key: Key, before: _Settled, revision: Revision | None, context: Context
    ) -> bool:
        if revision != before.revision or self._clock() >= before.until:
            return False
        try:
            brokers = context.brokers(before.endpoint)
            if brokers.describe() != before.view:
                return False
            if brokers.topics(brokers.topic_names() & before.named) != before.topics:
                return False
            if before.users and brokers.users(before.users.keys()) != before.users:
                return False
            if before.config is not None and brokers.dynamic_config() != before.config:
                return False
            return all(
                _version(context, *place) == version for place, version in before.secrets.items()
            )
        except (BrokersError, KubeError):
            # The pass asks again, and says so.
            return False


def _full_pass_s() -> float:
    """Clusters that were settled together are not all read together."""
    return FULL_PASS_S * random.uniform(0.5, 1.0)  # noqa: S311


def _version(context: Context, namespace: str, name: str) -> str:
    body = context.kube.get(SECRETS, namespace, name)
    return SecretView.of(body).version if body else ""


class _Recorder:
    """Brokers whose last answers are kept."""

    def __init__(self, connect: Callable[[Endpoint], Brokers]) -> None:
        self._connect = connect
        self.endpoint: Endpoint | None = None
        self.view: ClusterView | None = None
        self.topics: Answer = {}
        self.users: Mapping[str, UserView] = {}
        self.config: Mapping[str, str] | None = None

    def connect(self, endpoint: Endpoint) -> Brokers:
        """The brokers behind these addresses."""
        self.endpoint = endpoint
        return cast(Brokers, _Recorded(self._connect(endpoint), self))


class _Recorded:
    """The brokers themselves, with a note of what they say."""

    def __init__(self, brokers: Brokers, recorder: _Recorder) -> None:
        self._brokers = brokers
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        """Everything else of the port."""
        return getattr(self._brokers, name)

    def describe(self) -> ClusterView:
        """See Brokers."""
        self._recorder.view = view = self._brokers.describe()
        return view

    def dynamic_config(self) -> Mapping[str, str]:
        """See Brokers."""
        self._recorder.config = answer = self._brokers.dynamic_config()
        return answer

    def users(self, names: Collection[str]) -> Mapping[str, UserView]:
        """See Brokers."""
        self._recorder.users = answer = self._brokers.users(names)
        return answer

    def topics(self, names: Collection[str]) -> Answer:
        """See Brokers."""
        self._recorder.topics = answer = self._brokers.topics(names)
        return answer
