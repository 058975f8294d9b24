"""What any change of a member means for a consumer group: records, in the order in which Kafka writes them.

1. The member itself, and the regular expressions it brings or takes along.
2. A new group epoch, if subscriptions or topics have changed.
3. A new target assignment, if the group epoch has outrun it.
4. The member's next step towards the target.

Nothing here changes the group: the records do, once they are in the log.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.common.errors import ErrorCode
from ottla.common.result import Result
from ottla.groups import records, regex
from ottla.groups.consumer_group import (
    ConsumerGroup,
    Member,
    MemberState,
    ResolvedRegex,
    Target,
    metadata_hash,
    subscribed_topics,
    topics_of,
)
from ottla.groups.reconcile import Owned, reconcile
from ottla.groups.state import GroupState
from ottla.groups.target import compute_target, may_assign_again, target_records
from ottla.groups.timers import MEMBER_JOIN, MEMBER_REBALANCE, MEMBER_SESSION, MEMBER_SYNC

FIRST_EPOCH = 2


class Update:
    """One member's change on its way through the four steps."""

    def __init__(
        self,
        state: GroupState,
        group: ConsumerGroup,
        before: Member,
        after: Member,
        out: Result,
        may_describe: Callable[[str], bool] | None = None,
    ) -> None:
        self.state = state
        self.group = group
        # As the group knows it, or for one that is new a Member that is nothing but its id.
        self.before = before
        self.member = after
        self.out = out
        # Which topics the client that asks may know of; None: all.
        self._may_describe = may_describe
        self.is_new_group = state.consumer(group.group_id) is None
        self.regexes: dict[str, ResolvedRegex] = group.regexes
        self.has_new_subscription = False
        self.epoch = group.epoch

    def run(self, owned: Owned) -> Member:
        is_bump = self.write_member()
        self.write_epoch(is_bump)
        target_epoch, target = self._target()
        return self._reconcile(target_epoch, target, owned)

    def members_after(self) -> dict[str, Member]:
        members = dict(self.group.members)
        if self.member.instance_id is not None:
            # A static member that has come back under a new id replaces its old self.
            members.pop(self.group.static_ids.get(self.member.instance_id, ""), None)
        members[self.member.member_id] = self.member
        return members

    # --- 1: the member

    def write_member(self) -> bool:
        """True if the group has to move to a new epoch for it."""
        group, before, after = self.group, self.before, self.member
        if after is before and not (after.regex or group.regexes):
            return self.is_new_group
        if after != before:
            self.out.records.append(records.member_metadata(group.group_id, after))
        has_new_names = after.topics != before.topics
        has_new_regex = after.regex != before.regex
        self.has_new_subscription = has_new_names or has_new_regex
        is_bump = self.is_new_group or has_new_names or has_new_regex
        if has_new_regex and before.regex and group.subscribers(before.regex) == 1:
            self.out.records.append(records.regular_expression_tombstone(group.group_id, before.regex))
            self.regexes = {name: kept for name, kept in self.regexes.items() if name != before.regex}
        if after.regex and after.regex not in group.regexes:
            regex.check_regex(after.regex)
        if after.regex or group.regexes:
            is_bump |= self._refresh_regexes()
        return is_bump

    def _refresh_regexes(self) -> bool:
        """Resolve all expressions of the group together, so that they cost one rebalance at most. As in Kafka, with the
        topics that the member who makes it necessary may describe."""
        wanted = {member.regex: None for member in self.members_after().values() if member.regex}
        config, now_ms = self.state.config, self.out.now_ms
        is_unresolved = any(expression not in self.regexes for expression in wanted)
        age_ms = now_ms - max((resolved_regex.timestamp_ms for resolved_regex in self.regexes.values()), default=0)
        checked = self.group.regexes_checked
        is_stale = checked is None or checked < self.state.new_topics_number
        is_due = is_stale and not 0 <= age_ms < config.consumer_regex_refresh_interval_ms_min
        if not wanted or not (is_unresolved or is_due or age_ms >= config.consumer_regex_refresh_interval_ms):
            return False
        names = self.state.image.topics.keys()  # with the internal ones, as in Kafka
        resolved = dict(self.regexes)
        has_changed = False
        for expression in wanted:
            topics = regex.matching_topics(expression, names)
            if self._may_describe is not None:
                topics = tuple(filter(self._may_describe, topics))
            found = ResolvedRegex(topics, self.state.image_number, now_ms)
            known = resolved.get(expression)
            has_changed |= (known.topics if known is not None else ()) != found.topics
            resolved[expression] = found
            self.out.records.append(records.regular_expression(self.group.group_id, expression, found))
        self.regexes = resolved
        self._note_checked("regexes_checked")
        return has_changed

    # --- 2: the group's epoch

    def write_epoch(self, is_bump: bool) -> None:
        group = self.group
        if not is_bump and group.topics_checked == self.state.image_number:
            return
        topics = subscribed_topics(self.members_after().values(), self.regexes)
        found = metadata_hash(topics, self.state.image)
        if is_bump or found != group.metadata_hash:
            # As Kafka 4.3, where the first epoch of a group that has never been a classic one is 2.
            self.epoch = self.epoch + 1 if self.epoch else FIRST_EPOCH
            self.out.records.append(records.group_epoch(group.group_id, self.epoch, found))
        if group.has_partition_metadata_record:
            self.out.records.append(records.partition_metadata_tombstone(group.group_id))
        self._note_checked("topics_checked")

    def _note_checked(self, what: str) -> None:
        """An image has been dealt with only when what it led to is in the log."""
        group_id, state, number = self.group.group_id, self.state, self.state.image_number

        def note(error: ErrorCode, out: Result) -> None:
            group = state.consumer(group_id)
            if error is ErrorCode.NONE and group is not None:
                setattr(group, what, number)

        self.out.after_commit(note)

    # --- 3: the target

    def _target(self) -> tuple[int, Target]:
        group, config, now_ms = self.group, self.state.config, self.out.now_ms
        interval_ms = self.state.consumer_settings(group.group_id).assignment_interval_ms
        is_early = not may_assign_again(group.assignment_timestamp_ms, interval_ms, now_ms)
        if self.epoch <= group.assignment_epoch or is_early:
            return group.assignment_epoch, group.target_of(self.member)
        name = group.preferred_assignor(self.member) or config.consumer_assignors[0]
        target = compute_target(group, self.members_after(), self.regexes, name, self.state.image)
        self.out.records += target_records(group.group_id, group.targets, target, self.epoch, now_ms)
        return self.epoch, target[self.member.member_id]

    # --- 4: the member's step

    def _reconcile(self, target_epoch: int, target: Target, owned: Owned) -> Member:
        member = self.member
        if not self.has_new_subscription and member.is_reconciled_to(target_epoch):
            return member
        topics = self.state.image.topics
        subscribed = {topics[name].id: None for name in topics_of(member, self.regexes) if name in topics}
        stepped = reconcile(
            member,
            target_epoch=target_epoch,
            target=target,
            subscribed=subscribed,
            owner=self.group.owner,
            subscription_changed=self.has_new_subscription,
            owned=owned,
        )
        if stepped != member:
            self.out.records.append(records.current_assignment(self.group.group_id, stepped))
            self._time_revocation(stepped)
        self.member = stepped
        return stepped

    def _time_revocation(self, member: Member) -> None:
        """Members of the classic protocol have timers of their own for each phase."""
        if member.classic is not None:
            return
        key = (MEMBER_REBALANCE, self.group.group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self.out.schedule(key, member.rebalance_timeout_ms, member.epoch)
        else:
            self.out.cancel(key)


def replace_static(group: ConsumerGroup, old: Member, new: Member, out: Result) -> None:
    """Records that put `new` in the place of `old`: same partitions, same target, another id."""
    out.records += records.remove_member(group.group_id, old.member_id)
    out.records.append(records.member_metadata(group.group_id, new))
    out.records.append(records.target_assignment(group.group_id, new.member_id, group.target_of(old)))
    out.records.append(records.current_assignment(group.group_id, new))


def cancel_timers(group_id: str, member_id: str, out: Result) -> None:
    for kind in (MEMBER_SESSION, MEMBER_REBALANCE, MEMBER_JOIN, MEMBER_SYNC):
        out.cancel((kind, group_id, member_id))
