"""What a plan found out: reasons for programs, each with one severity and one meaning.

`docs/reference/operator-reasons.md` is generated from this enum and from the table of checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """What a finding does to the conditions of its resource."""

    BLOCKING = "Ready=False"
    WAITING = "Reconciling"
    STALLED = "Stalled"
    WARNING = "Warning"
    NOTE = "status.updateAvailable"


class Reason(StrEnum):
    """The reason of a finding: a word, its severity, and what it means."""

    severity: Severity
    meaning: str

    def __new__(cls, word: str, severity: Severity, meaning: str) -> Reason:
        """A member with its severity and meaning."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.severity = severity
        member.meaning = meaning
        return member

    STARTING = (
        "Starting",
        Severity.BLOCKING,
        "Not all brokers have been ready yet since the cluster was created.",
    )
    UNREACHABLE = (
        "Unreachable",
        Severity.BLOCKING,
        "No broker answers the operator's Metadata request.",
    )
    LEADERLESS_PARTITIONS = (
        "LeaderlessPartitions",
        Severity.BLOCKING,
        "Partitions have no leader: they can be neither read nor written.",
    )
    NODE_PORTS_PENDING = (
        "NodePortsPending",
        Severity.WAITING,
        "Kubernetes has not assigned a port to a listener of type nodeport.",
    )
    RACK_UNKNOWN = (
        "RackUnknown",
        Severity.WAITING,
        "A broker waits for its rack, which the operator cannot read off its node.",
    )
    APPLYING = (
        "Applying",
        Severity.WAITING,
        "Objects were applied in this pass; the next pass looks at the result.",
    )
    STATEFUL_SET_PENDING = (
        "StatefulSetPending",
        Severity.WAITING,
        "A StatefulSet does not exist yet, or its controller has not observed its generation.",
    )
    POD_MISSING = (
        "PodMissing",
        Severity.WAITING,
        "A StatefulSet has fewer pods than replicas.",
    )
    POD_TERMINATING = (
        "PodTerminating",
        Severity.WAITING,
        "A pod is shutting down.",
    )
    POD_NOT_READY = (
        "PodNotReady",
        Severity.WAITING,
        "A pod is not ready. It is waited for, never restarted: it may be in log recovery.",
    )
    POD_BROKEN = (
        "PodBroken",
        Severity.WAITING,
        "A pod cannot start: crash loop, image pull, scheduling or container configuration.",
    )
    ROLL_PENDING = (
        "RollPending",
        Severity.WAITING,
        "Pods run an older pod template and are replaced one at a time.",
    )
    ROLL_WAITS_FOR_ENSEMBLE = (
        "RollWaitsForEnsemble",
        Severity.WAITING,
        "No broker is replaced before the ensemble is complete, current and has a quorum.",
    )
    ROLL_WAITS_FOR_BROKERS = (
        "RollWaitsForBrokers",
        Severity.WAITING,
        "No ensemble member is replaced before all brokers are ready.",
    )
    ROLL_WAITS_FOR_REPLICAS = (
        "RollWaitsForReplicas",
        Severity.WAITING,
        "A broker's restart puts partitions at risk, or a replaced broker is not in sync yet.",
    )
    ROLL_WAITS_FOR_BUDGET = (
        "RollWaitsForBudget",
        Severity.WAITING,
        "A PodDisruptionBudget forbids an eviction: a node is drained, or a broker is not in sync.",
    )
    DYNAMIC_CONFIG_UNKNOWN = (
        "DynamicConfigUnknown",
        Severity.WAITING,
        "Brokers do not say, or do not take, the dynamic settings of spec.config yet.",
    )
    DYNAMIC_CONFIG_REFUSED = (
        "DynamicConfigRefused",
        Severity.STALLED,
        "Brokers refuse a dynamic setting of spec.config, and go on with the value that they have.",
    )
    ROLL_STOPPED = (
        "RollStopped",
        Severity.STALLED,
        "A pod of the current template is broken; no further pod is replaced with it.",
    )
    REFUSED = (
        "Refused",
        Severity.STALLED,
        "The API server refuses an object; everything that does not need it goes on.",
    )
    UNKNOWN_VERSION = (
        "UnknownVersion",
        Severity.STALLED,
        "No images of spec.version are known, or they are of an older protocol; those in use stay.",
    )
    ROLL_HELD_BACK = (
        "RollHeldBack",
        Severity.WAITING,
        "A roll is paused, or spec.roll asks for an approval, or for a window that is not open.",
    )
    ROLL_SOAKS = (
        "RollSoaks",
        Severity.WAITING,
        "The pod that was replaced last is not ready for spec.roll.soakSeconds yet.",
    )
    UPDATE_AVAILABLE = (
        "UpdateAvailable",
        Severity.NOTE,
        "The operator was upgraded; the pods stay as they are until the resource changes.",
    )
    INVALID_SPEC = (
        "InvalidSpec",
        Severity.STALLED,
        "No broker would start so, something is the operator's, or has no effect; nothing changes.",
    )
    INVALID_TEMPLATE = (
        "InvalidTemplate",
        Severity.STALLED,
        "The API server refuses pods as a template asks for them; those that run stay as they are.",
    )
    CERTIFICATE_AUTHORITY_INVALID = (
        "CertificateAuthorityInvalid",
        Severity.STALLED,
        "A certificate authority is missing or cannot be used; certificates stay as they are.",
    )
    CERTIFICATE_EXPIRES = (
        "CertificateExpires",
        Severity.WARNING,
        "A certificate that is not renewed expires in thirty days, or the last sixth of its time.",
    )
    LISTENER_CERTIFICATE_INVALID = (
        "ListenerCertificateInvalid",
        Severity.STALLED,
        "The Secret of a listener's own certificate cannot be used; what it shows stays as it is.",
    )
    CERTIFICATE_PENDING = (
        "CertificatePending",
        Severity.WAITING,
        "An issuer has not issued the certificate of a listener yet; what it shows stays as it is.",
    )
    CERTIFICATE_LACKS_HOSTS = (
        "CertificateLacksHosts",
        Severity.WARNING,
        "A listener's own certificate does not name a host at which clients reach the listener.",
    )
    BROKERS_KEPT = (
        "BrokersKept",
        Severity.WARNING,
        "There are more brokers than the spec asks for, as they hold replicas.",
    )
    CLAIMS_KEPT = (
        "ClaimsKept",
        Severity.WARNING,
        "Claims of removed brokers are still there; delete them, or add the brokers again.",
    )
    CLAIM_NOT_EXPANDABLE = (
        "ClaimNotExpandable",
        Severity.WARNING,
        "The API server refuses to grow a claim, mostly as its StorageClass does not expand.",
    )
    STORAGE_CLASS_IGNORED = (
        "StorageClassIgnored",
        Severity.WARNING,
        "The storageClass of the spec is not that of the existing claims, and has no effect.",
    )
    INTERNAL_TOPIC_REPLICAS = (
        "InternalTopicReplicas",
        Severity.WARNING,
        "An internal topic has fewer replicas than it would be created with now.",
    )
    CLAIM_POLICIES_DIFFER = (
        "ClaimPoliciesDiffer",
        Severity.WARNING,
        "The brokers' claims outlive the cluster and the ensemble's, which have its id, do not.",
    )
    LISTENER_PENDING = (
        "ListenerPending",
        Severity.WARNING,
        "A listener has no address yet: brokers advertise it once Kubernetes gives one.",
    )
    VALUE_ALTERED = (
        "ValueAltered",
        Severity.WARNING,
        "A webhook or another manager alters a value as often as the operator applies it.",
    )
    NAMESPACE_NOT_ALLOWED = (
        "NamespaceNotAllowed",
        Severity.STALLED,
        "A resource names a cluster of another namespace that is not there or does not allow it.",
    )
    NAMESPACE_NOT_WATCHED = (
        "NamespaceNotWatched",
        Severity.STALLED,
        "A resource names a cluster of a namespace that the operator does not watch.",
    )
    CLAIM_LARGER = (
        "ClaimLarger",
        Severity.WARNING,
        "A claim is larger than the spec asks for: claims never shrink.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One observation: its reason, and a message that names the object and what to do."""

    reason: Reason
    message: str

    @property
    def severity(self) -> Severity:
        """The severity of its reason."""
        return self.reason.severity
