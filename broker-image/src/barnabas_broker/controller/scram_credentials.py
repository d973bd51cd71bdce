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
    """The settings of each user whose changes are granted, and the errors of the others."""
    changes: list[Deletion | Upsertion] = [*deletions, *upsertions]
    altered = Counter((each.user, each.mechanism) for each in changes)
    configs: dict[str, dict[str, str]] = {}
    refused: dict[str, KafkaError] = {}
    for change in changes:
        try:
            if altered[change.user, change.mechanism] > 1:
                raise KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
            config = configs.setdefault(change.user, dict(known.get(change.user, {})))
            _apply(change, config)
        except KafkaError as error:
            refused.setdefault(change.user, error)
    return {user: it for user, it in configs.items() if user not in refused}, refused


def _apply(change: Deletion | Upsertion, config: dict[str, str]) -> None:
    if not change.user:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    try:
        mechanism = ScramMechanism(change.mechanism)
    except ValueError:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism") from None
    if isinstance(change, Deletion):
        if config.pop(mechanism.wire_name, None) is None:
            raise KafkaError(
                ErrorCode.RESOURCE_NOT_FOUND,
                "Attempt to delete a user credential that does not exist",
            )
        return
    if change.iterations < ITERATIONS_MIN:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    config[mechanism.wire_name] = ScramCredential.from_salted_password(
        mechanism, change.salted_password, change.salt, change.iterations
    ).format()
