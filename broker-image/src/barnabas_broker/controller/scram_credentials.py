"""Decides about AlterUserScramCredentials (KIP-554): what to store for each user, or why not.

The rules and messages are those of Kafka's ZkAdminManager. If one change of a user is rejected,
none of its changes is applied; other users are not affected.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas_broker.security.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
)
from barnabas_kafka.errors import ErrorCode, KafkaError

UserConfigs = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Deletion:
    """A credential that is to go; the mechanism is its number on the wire."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class Upsertion:
    """A credential to set: the client salts the password, the broker never learns it."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


def plan_credentials(
    known: UserConfigs, deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]
) -> tuple[dict[str, dict[str, str]], dict[str, KafkaError]]:
    """The settings of each user whose changes are granted, and the errors of the others.

    Of several faults Kafka names the one that it looks for first: malformed changes, the last
    upsertion's before deletions'; then what is altered twice; then what is not there.
    """
    changes: list[Deletion | Upsertion] = [*deletions, *upsertions]
    refused = {each.user: fault for each in changes if (fault := _fault(each)) is not None}
    wellformed = [each for each in changes if each.user not in refused]
    altered = Counter((each.user, each.mechanism) for each in wellformed)
    for (user, _), times in altered.items():
        if times > 1:
            refused[user] = KafkaError(
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            )
    configs: dict[str, dict[str, str]] = {}
    for change in wellformed:
        if change.user in refused:
            continue
        try:
            _apply(change, configs.setdefault(change.user, dict(known.get(change.user, {}))))
        except KafkaError as error:
            refused[change.user] = error
    return {user: it for user, it in configs.items() if user not in refused}, refused


def _fault(change: Deletion | Upsertion) -> KafkaError | None:
    """What is wrong with a change, whatever is known of the user."""
    if not change.user:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in set(ScramMechanism):
        return KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, Upsertion):
        if change.iterations < ITERATIONS_MIN:
            return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if change.iterations > ITERATIONS_MAX:
            return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None


def _apply(change: Deletion | Upsertion, config: dict[str, str]) -> None:
    mechanism = ScramMechanism(change.mechanism)
    if isinstance(change, Upsertion):
        config[mechanism.wire_name] = ScramCredential.from_salted_password(
            mechanism, change.salted_password, change.salt, change.iterations
        ).format()
    elif config.pop(mechanism.wire_name, None) is None:
        raise KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
        )
