"""Questions that both brokers are asked: classic groups, their members and their offsets."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any, Final

from barnabas_kafka.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.join_group import JoinGroupResponse
from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas_kafka.protocol.messages.list_groups import ListGroupsRequest
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas_kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.clients.wire import Wire, frame
from tests.oracle.classic_members import Member, await_coordinator
from tests.oracle.sides import Side

LONGEST_TEXT: Final = 4096
JOINS, SYNCS, BEATS, LEAVES, COMMITS, FETCHES = (
    range(10), range(6), range(5), range(6), range(10), range(10),
)  # fmt: skip
#: The first versions that have static members.
STATIC_JOINS, STATIC_SYNCS, STATIC_BEATS, STATIC_COMMITS = (
    range(5, 10), range(3, 6), range(3, 5), range(7, 10),
)  # fmt: skip
NEW_LEAVES: Final = range(3, 6)


class Drawn(Member):
    """A member whose id is told without what the broker drew."""

    def join(self, label: str, version: int = 7, **changed: Any) -> Any:
        answer = self.side.wait(self.joining(**changed), version, settled=lambda _: True)
        if answer.member_id:
            self.side.name_member(answer.member_id)
        self.side.keep(label, answer)
        self.id, self.generation = answer.member_id, answer.generation_id
        return answer


def _every_coordinator(side: Side) -> None:
    """Wait until groups can be asked about whose names hash to any of the three partitions."""
    for group in "abc":
        await_coordinator(side, group)


def _described(side: Side, label: str, *groups: str) -> None:
    side.ask(f"{label}, described", DescribeGroupsRequest(groups=list(groups)), 5)


def finding_coordinators(side: Side) -> None:
    """FindCoordinator: groups and transactional ids, keys that are none, kinds there are not."""
    for kind in (0, 1):
        side.wait(
            FindCoordinatorRequest(coordinator_keys=["finding"], key_type=kind),
            4,
            settled=lambda answer: not answer.coordinators[0].error_code,
        )
    side.ask("before there were kinds", FindCoordinatorRequest(key="finding"), 0)
    for kind in (0, 1, 2, -1):
        for key in ("finding", ""):
            one = FindCoordinatorRequest(key=key, key_type=kind)
            side.ask_all(f"{key!r} of kind {kind}", one, (1, 2, 3))
            some = FindCoordinatorRequest(coordinator_keys=[key, "finding"], key_type=kind)
            side.ask_all(f"{key!r} and another of kind {kind}", some, (4, 5))
    side.ask("no keys", FindCoordinatorRequest(coordinator_keys=[]), 4)


def joining_groups(side: Side) -> None:
    """JoinGroup of members that may, and of those that may not."""
    _every_coordinator(side)
    for version in JOINS:
        label = f"version {version}"
        new = Drawn(side, f"joining-{version}", ["t"])
        new.join(f"new, {label}", version)
        _described(side, f"new, {label}", new.group)
        new.join(f"new once more, {label}", version)
        stranger = Drawn(side, f"joining-{version}", id="stranger")
        side.ask(f"unknown member, {label}", stranger.joining(), version)
        nobody = Drawn(side, f"joining-nobody-{version}", id="stranger")
        side.ask(f"unknown group, {label}", nobody.joining(), version)
        side.ask(f"no group, {label}", stranger.joining(group_id=""), version)
    fresh = Drawn(side, "joining-fresh")
    for timeout_ms in (-1, 0, 5999, 1_800_001):
        request = fresh.joining(session_timeout_ms=timeout_ms)
        side.ask_all(f"session of {timeout_ms}", request, (0, 4, 9))
    wrong: dict[str, dict[str, Any]] = {
        "no protocols": {"protocols": {}},
        "no type": {"protocol_type": ""},
        "another type": {"protocol_type": "connect"},
        "another protocol": {"protocols": {"sticky": b""}},
    }
    for what in ("no protocols", "no type"):
        side.ask_all(f"{what}, fresh", fresh.joining(**wrong[what]), (0, 3, 4, 9))
    _described(side, "fresh", "joining-fresh")
    there = Drawn(side, "joining-there", ["t"])
    there.enter("there")
    for what, changed in wrong.items():
        for who in (Drawn(side, there.group), there):
            label = f"{what}, {'there' if who.id else 'new'}"
            side.ask_all(label, who.joining(**changed), (0, 4, 9))
    _described(side, "there", there.group)
    there.join("leader joins again", 9)
    _described(side, "leader joins again", there.group)
    there.join("leader joins once more", 5, session_timeout_ms=7000)


def static_members(side: Side) -> None:
    """Static members that come back, those whose place they took, and who takes them out."""
    _every_coordinator(side)
    old = Drawn(side, "static", ["t"], instance="i")
    old.enter("old")
    topic = side.topic("of-static")
    for version in STATIC_JOINS:
        back = copy(old)
        back.id = ""
        back.join(f"back, version {version}", version)
        side.ask(f"back syncs, version {version}", back.syncing(), 5)
        _fenced(old, f"before {version}", topic)
        _described(side, f"back, version {version}", old.group)
        old = back
    _fenced(replace(old, instance="j"), "another instance", topic)
    _fenced(replace(old, instance=None), "no instance", topic)
    _fenced(replace(old, id=""), "no id", topic)
    other = replace(old, id="", instance="i")
    other.join("back with another protocol", 7, protocols={"sticky": b"\0\0\0\0\0\0"})
    _described(side, "back with another protocol", old.group)
    leavers = {
        "unknown instance": ("", "j"),
        "unknown id": ("stranger", None),
        "fenced": (old.id, "i"),
        "nobody": ("", None),
        "id of another": (other.id, "j"),
        "by instance": ("", "i"),
        "gone": ("", "i"),
    }
    for what, (member, instance) in leavers.items():
        identity = MemberIdentity(member_id=member, group_instance_id=instance)
        request = LeaveGroupRequest(group_id=old.group, members=[identity])
        side.ask_all(f"leaves: {what}", request, NEW_LEAVES)
    _described(side, "all have left", old.group)


def replace(member: Drawn, **changed: Any) -> Drawn:
    """The member with other fields."""
    found = copy(member)
    for name, value in changed.items():
        setattr(found, name, value)
    return found


def _fenced(member: Drawn, label: str, topic: str) -> None:
    """What a member is told that may be none any more."""
    side = member.side
    side.ask_all(f"{label}, beats", member.beating(), STATIC_BEATS)
    side.ask_all(f"{label}, syncs", member.syncing(), STATIC_SYNCS)
    side.ask_all(f"{label}, commits", member.committing(topic), STATIC_COMMITS)
    if member.id:
        side.ask_all(f"{label}, joins", member.joining(), STATIC_JOINS)


def requests_of_members(side: Side) -> None:
    """SyncGroup, Heartbeat and LeaveGroup of members, of strangers and in other generations."""
    _every_coordinator(side)
    known = Drawn(side, "requests", ["t"])
    known.join("known asks for an id")
    pending = copy(known)
    side.ask_all("pending beats", pending.beating(), BEATS)
    side.ask_all("pending syncs", pending.syncing(), SYNCS)
    known.join("known joins")
    side.ask_all("before its sync, beats", known.beating(), BEATS)
    side.ask_all("before its sync, wrong generation", known.syncing(generation_id=7), SYNCS)
    side.ask("syncs", known.syncing(b"share"), 5)
    strangers = {
        "known": known,
        "unknown member": replace(known, id="stranger"),
        "no member": replace(known, id=""),
        "generation before": replace(known, generation=known.generation - 1),
        "generation after": replace(known, generation=known.generation + 1),
        "no generation": replace(known, generation=-1),
        "unknown group": replace(known, group="requests-unknown"),
        "no group": replace(known, group=""),
    }
    for who, member in strangers.items():
        side.ask_all(f"{who} beats", member.beating(), BEATS)
        side.ask_all(f"{who} syncs", member.syncing(), SYNCS)
    for changed in ({"protocol_type": "connect"}, {"protocol_name": "sticky"},
                    {"protocol_type": None}, {"protocol_name": None}):  # fmt: skip
        side.ask_all(f"syncs with {changed}", known.syncing(**changed), (4, 5))
    for who in ("unknown member", "no member", "unknown group", "no group"):
        _leave_all(f"{who} leaves", strangers[who])
    for version in LEAVES:
        late = Drawn(side, f"requests-leaving-{version}", ["t"])
        late.join(f"pending {version}")
        _leave(f"pending {version} leaves", late, version)
        late.id = ""
        late.join(f"another {version}", 3)
        _leave(f"another {version} leaves", late, version)
        _leave(f"another {version} leaves again", late, version)
        side.ask_all(f"another {version} beats", late.beating(), BEATS)
        side.ask_all(f"another {version} syncs", late.syncing(), SYNCS)
        _described(side, f"another {version}", late.group)
    several = [MemberIdentity(member_id=each) for each in ("stranger", known.id, "", known.id)]
    side.ask_all("several leave", LeaveGroupRequest(group_id="requests", members=several), (5, 3))
    side.ask("none leave", LeaveGroupRequest(group_id="requests", members=[]), 5)


def _leave_all(label: str, member: Drawn) -> None:
    for version in LEAVES:
        _leave(f"{label}, version {version}", member, version)


def _leave(label: str, member: Drawn, version: int) -> None:
    """LeaveGroup, which has room for one member only before version 3."""
    request = member.leaving()
    if version not in NEW_LEAVES:
        request = LeaveGroupRequest(group_id=member.group, member_id=member.id)
    member.side.ask(label, request, version)


def rebalances(side: Side) -> None:
    """What a member hears while another comes, state by state."""
    _every_coordinator(side)
    topic = side.topic("of-rebalances")
    leader = Drawn(side, "rebalances", [topic])
    leader.enter("leader")
    with Wire(side.bootstrap) as wire:
        newcomer = Drawn(side, leader.group, [topic])
        wire.send(frame(newcomer.joining(), 3))
        preparing = side.wait(
            DescribeGroupsRequest(groups=[leader.group]),
            5,
            settled=lambda answer: answer.groups[0].group_state == "PreparingRebalance",
        )
        for member in preparing.groups[0].members:
            side.name_member(member.member_id)
        _state(leader, "preparing", topic)
        joined = side.wait(leader.joining(), 7, settled=lambda _: True)
        found = wire.receive(JoinGroupResponse, 3)
    newcomer.id, newcomer.generation = found.member_id, found.generation_id
    leader.generation = joined.generation_id
    side.keep("leader joins again", joined)
    side.keep("newcomer joins", found)
    _state(leader, "completing", topic)
    _state(newcomer, "newcomer, completing", topic)
    side.ask("leader shares out", leader.syncing(b"share"), 5)
    side.ask("newcomer syncs", newcomer.syncing(), 5)
    side.ask_all("newcomer joins once more", newcomer.joining(), (5, 9))
    _described(side, "stable", leader.group)
    _leave("newcomer leaves", newcomer, 4)
    _state(leader, "preparing again", topic)


def _state(member: Drawn, label: str, topic: str) -> None:
    """What a member may do in this state, other than joining and syncing."""
    side = member.side
    _described(side, label, member.group)
    side.ask_all(f"{label}, beats", member.beating(), BEATS)
    side.ask_all(f"{label}, commits", member.committing(topic), COMMITS)
    side.ask_all(f"{label}, commits too late", member.committing(
        topic, generation_id_or_member_epoch=member.generation - 1), COMMITS)  # fmt: skip
    if "preparing" in label:
        side.ask_all(f"{label}, syncs", member.syncing(), SYNCS)
    side.ask(f"{label}, deletes", DeleteGroupsRequest(groups_names=[member.group]), 2)


def commits(side: Side) -> None:
    """OffsetCommit of members, of strangers and of those who are in no group."""
    _every_coordinator(side)
    topic = side.topic("commits", partitions=2)
    live = Drawn(side, "commits-live", [topic])
    live.enter("live")
    empty = Drawn(side, "commits-empty", [topic])
    empty.enter("empty")
    side.ask("empty leaves", empty.leaving(), 4)
    simple = Drawn(side, "commits-simple")
    who = {
        "live": live,
        "live, unknown": replace(live, id="stranger"),
        "live, simple": replace(live, id="", generation=-1),
        "live, no member": replace(live, id=""),
        "live, no generation": replace(live, generation=-1),
        "live, generation before": replace(live, generation=live.generation - 1),
        "live, generation after": replace(live, generation=live.generation + 1),
        "live, static": replace(live, instance="i"),
        "empty, as before": empty,
        "empty, simple": replace(empty, id="", generation=-1),
        "empty, no member": replace(empty, id=""),
        "empty, no generation": replace(empty, generation=-1),
        "simple": simple,
        "simple, a generation": replace(simple, generation=1),
        "simple, a member": replace(simple, id="stranger"),
        "unknown, both": replace(simple, group="commits-unknown", id="stranger", generation=1),
        "unknown, a member": replace(simple, group="commits-unknown", id="stranger"),
        "unknown, a generation": replace(simple, group="commits-unknown", generation=1),
        "no group": replace(simple, group=""),
    }
    for label, member in who.items():
        versions = COMMITS if member.instance is None else STATIC_COMMITS
        side.ask_all(label, member.committing(topic, (1, 2)), versions)
    side.ask_all("a partition too many", simple.committing(topic, (1, 2, 3)), COMMITS)
    side.ask_all("unknown topic", simple.committing("is-not-there"), COMMITS)
    side.ask_all("topic without a name", simple.committing(""), (1, 9))
    for length in (LONGEST_TEXT, LONGEST_TEXT + 1):
        request = simple.committing(topic, text="x" * length)
        side.ask_all(f"text of {length}", request, (1, 5, 9))
    side.ask_all("no text", simple.committing(topic, text=None), COMMITS)
    for offset in (-1, -2, 1 << 62):
        side.ask_all(f"offset {offset}", simple.committing(topic, (offset,)), (1, 5, 9))
        side.ask(f"after {offset}", _fetching("commits-simple", 8, topic), 8)
    side.ask_all("no topics", simple.committing(topic, topics=[]), COMMITS)
    side.ask_all("no partitions", simple.committing(topic, ()), COMMITS)
    side.ask_all("twice", _twice(topic), (1, 9))
    for group in ("commits-live", "commits-empty", "commits-simple", "commits-unknown",
                  "commits-twice"):  # fmt: skip
        side.ask(f"offsets of {group}", _fetching(group, 8), 8)
    _described(side, "all", "commits-live", "commits-empty", "commits-simple", "commits-unknown")


def _twice(topic: str) -> OffsetCommitRequest:
    """Commits of one partition, in one topic twice, and in another mention of it."""
    topics = [
        OffsetCommitRequestTopic(name=topic, partitions=[
            OffsetCommitRequestPartition(
                partition_index=0, committed_offset=offset, committed_metadata="")
            for offset in offsets
        ])
        for offsets in ((1, 2), (3,))
    ]  # fmt: skip
    return OffsetCommitRequest(group_id="commits-twice", topics=topics)


def _fetching(
    group: str, version: int, topic: str | None = None, *partitions: int, stable: bool = False
) -> OffsetFetchRequest:
    """OffsetFetch of one topic, or of all, in the shape of the version."""
    wanted = list(partitions or (0, 1))
    if version < 8:
        old = None if topic is None else [
            OffsetFetchRequestTopic(name=topic, partition_indexes=wanted)]  # fmt: skip
        return OffsetFetchRequest(group_id=group, topics=old, require_stable=stable)
    new = None if topic is None else [
        OffsetFetchRequestTopics(name=topic, partition_indexes=wanted)]  # fmt: skip
    groups = [OffsetFetchRequestGroup(group_id=group, topics=new)]
    return OffsetFetchRequest(groups=groups, require_stable=stable)


def fetches_of_offsets(side: Side) -> None:
    """OffsetFetch in the shapes of all versions."""
    _every_coordinator(side)
    topic = side.topic("fetches", partitions=2)
    simple = Drawn(side, "fetches")
    for version in (0, 9):
        side.ask(f"commit {version}", simple.committing(topic, (7,), "a word"), version)
    for version in FETCHES:
        label = f"version {version}"
        side.ask(f"one, {label}", _fetching("fetches", version, topic, 0), version)
        side.ask(f"some, {label}", _fetching("fetches", version, topic, 1, 0, 9, -1), version)
        side.ask(f"twice, {label}", _fetching("fetches", version, topic, 0, 0), version)
        side.ask(f"unknown topic, {label}", _fetching("fetches", version, "nothing"), version)
        side.ask(f"unknown group, {label}", _fetching("fetches-not", version, topic), version)
        side.ask(f"no group, {label}", _fetching("", version, topic), version)
        if version >= 2:
            side.ask(f"all, {label}", _fetching("fetches", version), version)
            side.ask(f"all of unknown, {label}", _fetching("fetches-not", version), version)
            side.ask(f"all of no group, {label}", _fetching("", version), version)
        if version >= 7:
            stable = _fetching("fetches", version, topic, stable=True)
            side.ask(f"stable, {label}", stable, version)
        if version >= 8:
            each = [
                _fetching(group, version, *of).groups[0]
                for group in ("fetches", "fetches-not", "")
                for of in ((topic,), ())
            ]
            side.ask(f"several, {label}", OffsetFetchRequest(groups=each[:4]), version)
            side.ask(f"several and none, {label}", OffsetFetchRequest(groups=each), version)
    member = OffsetFetchRequestGroup(group_id="fetches", topics=None, member_id="m", member_epoch=3)
    side.ask("as a member", OffsetFetchRequest(groups=[member]), 9)


def _groups_of_all_kinds(side: Side, prefix: str) -> tuple[str, dict[str, str]]:
    """A topic with offsets of a live group, an empty and a simple one, and one of another type."""
    _every_coordinator(side)
    topic = side.topic(f"{prefix}-read", partitions=2)
    groups = {kind: f"{prefix}-{kind}" for kind in ("live", "empty", "simple", "other")}
    for kind, group in groups.items():
        member = Drawn(side, group, [topic])
        if kind == "other":
            member.join(f"{kind} joins", 3, protocol_type="connect", protocols={"range": b""})
            side.ask(f"{kind} syncs", member.syncing(b"share", protocol_type="connect"), 5)
        elif kind != "simple":
            member.enter(kind)
        side.ask(f"{kind} commits", member.committing(topic, (1, 2), "word"), 8)
        if kind == "empty":
            side.ask(f"{kind} leaves", member.leaving(), 4)
    return topic, groups


def descriptions(side: Side) -> None:
    """DescribeGroups and ListGroups, with filters."""
    _, groups = _groups_of_all_kinds(side, "described")
    for kind, group in (groups | {"unknown": "described-not", "no": ""}).items():
        side.ask_all(f"{kind} group", DescribeGroupsRequest(groups=[group]), range(6))
    everybody = [*groups.values(), groups["live"], "described-not", ""]
    side.ask_all("all, one of them twice", DescribeGroupsRequest(groups=everybody), (0, 5))
    side.ask_all("none", DescribeGroupsRequest(groups=[]), (0, 5))
    _listed(side, "listed", ListGroupsRequest(), *range(6))
    for states in (["Stable"], ["Empty"], ["Dead"], ["stable"], ["Sleeping"], [""],
                   ["Stable", "Empty"], ["PreparingRebalance", "CompletingRebalance"]):  # fmt: skip
        _listed(side, f"listed when {states}", ListGroupsRequest(states_filter=states), 4, 5)
    for types in (["classic"], ["Classic"], ["consumer"], ["nonsense"], [""], ["classic", "x"]):
        _listed(side, f"listed of {types}", ListGroupsRequest(types_filter=types), 5)
    both = ListGroupsRequest(states_filter=["Empty"], types_filter=["classic"])
    _listed(side, "listed by both", both, 5)


def _listed(side: Side, label: str, request: ListGroupsRequest, *versions: int) -> None:
    """ListGroups without the groups of other questions."""
    for version in versions:
        answer = side.wait(request, version, settled=lambda _: True)
        answer.groups = [each for each in answer.groups if each.group_id.startswith("described-")]
        side.keep(f"{label}, version {version}", answer)


def deletions(side: Side) -> None:
    """DeleteGroups and OffsetDelete of groups with members and without."""
    topic, groups = _groups_of_all_kinds(side, "deleted")
    unread = side.topic("deleted-unread")
    for kind, group in (groups | {"unknown": "deleted-not", "no": ""}).items():
        for name in (topic, unread, "is-not-there"):
            side.ask(f"{name} of {kind} group", _deleting(group, name, 0, 9), 0)
        if group:
            side.ask(f"offsets left to {kind} group", _fetching(group, 8), 8)
    side.ask("nothing", OffsetDeleteRequest(group_id=groups["simple"]), 0)
    side.ask("no partitions", _deleting(groups["simple"], topic), 0)
    wanted = [*groups.values(), "deleted-not", ""]
    for version in range(3):
        for group in wanted[:1] + wanted[-2:]:
            request = DeleteGroupsRequest(groups_names=[group])
            side.ask(f"group {group}, version {version}", request, version)
    twice = DeleteGroupsRequest(groups_names=[*wanted, groups["simple"], groups["live"]])
    side.ask("groups", twice, 2)
    side.ask("groups again", DeleteGroupsRequest(groups_names=wanted), 2)
    side.ask("no groups", DeleteGroupsRequest(groups_names=[]), 2)
    _described(side, "afterwards", *groups.values())
    for group in groups.values():
        side.ask(f"offsets of {group}", _fetching(group, 8), 8)


def last_offsets(side: Side) -> None:
    """OffsetDelete of all that a group has: one without members goes with it."""
    topic, groups = _groups_of_all_kinds(side, "last")
    for kind, group in groups.items():
        side.ask(f"one of {kind}", _deleting(group, topic, 0), 0)
        side.ask(f"the last of {kind}", _deleting(group, topic, 1), 0)
        side.ask(f"one that {kind} has no more", _deleting(group, topic, 1), 0)
        side.ask(f"{kind} deleted", DeleteGroupsRequest(groups_names=[group]), 2)
    _described(side, "afterwards", *groups.values())


def deleted_topics(side: Side) -> None:
    """The offsets of a deleted topic go, and with the last one a group without members."""
    topic, groups = _groups_of_all_kinds(side, "gone")
    side.topic("gone-stays")
    member = Drawn(side, groups["simple"])
    side.ask("simple commits elsewhere", member.committing("gone-stays", (1,), "word"), 8)
    side.ask("deleted", DeleteTopicsRequest(topic_names=[topic], timeout_ms=60_000), 5)
    for kind, group in groups.items():
        # Apache's coordinator looks at one group after the other, a little later.
        side.ask_until(
            f"offsets of {kind}", _fetching(group, 8), 8, settled=partial(_without, topic)
        )
    request = DescribeGroupsRequest(groups=[groups["empty"]])
    side.ask_until("empty", request, 5, settled=lambda it: it.groups[0].group_state == "Dead")
    _described(side, "afterwards", *groups.values())


def _without(topic: str, answer: Any) -> bool:
    """Whether no offset of that topic is left."""
    (group,) = answer.groups
    return all(each.name != topic for each in group.topics)


def _deleting(group: str, topic: str, *partitions: int) -> OffsetDeleteRequest:
    wanted = [OffsetDeleteRequestPartition(partition_index=number) for number in partitions]
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=wanted)]
    return OffsetDeleteRequest(group_id=group, topics=topics)


QUESTIONS: Final = (
    finding_coordinators, joining_groups, static_members, requests_of_members, rebalances, commits,
    fetches_of_offsets, descriptions, deletions, last_offsets, deleted_topics,
)  # fmt: skip
