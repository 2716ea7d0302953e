"""Robust aggregation as a change of the replies, so that every averaging strategy has it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median_low

from common.arrays import Arrays
from common.config.federation import RobustRule
from server.aggregation.robust import attackers, coordinate_median, geometric_median, multi_krum, trimmed_mean
from server.aggregation.round_results import Reply

MIN_REPLIES = 3
"""Replies of a group from which its aggregate is robust; fewer keep their mean."""

Aggregate = Callable[[Sequence[Arrays], int], Arrays]

AGGREGATES: dict[str, Aggregate] = {
    "median": lambda updates, malicious: coordinate_median(updates),
    "trimmed-mean": trimmed_mean,
    "geometric-median": lambda updates, malicious: geometric_median(updates),
}


def robust_replies(replies: list[Reply], rule: RobustRule, share: float, group_of: Callable[[str], int]) -> list[Reply]:
    """Return replies of which every mean within a group is the robust aggregate of the group.

    They have equal weights and steps, so that no client decides on either.

    Args:
        replies: Replies of the round.
        rule: Rule of aggregation.
        share: Assumed share of attackers.
        group_of: Group of a client, with a model of its own.
    """
    if rule == "none":
        return replies
    groups: dict[int, list[Reply]] = {}
    for reply in replies:
        groups.setdefault(group_of(reply.client), []).append(reply)
    changed = {r.client: r for members in groups.values() for r in _aggregate(members, rule, share)}
    return [changed[reply.client] for reply in replies if reply.client in changed]


def _aggregate(members: list[Reply], rule: RobustRule, share: float) -> list[Reply]:
    steps, malicious = median_low(reply.train.steps for reply in members), attackers(len(members), share)
    updates = [reply.train.update for reply in members]
    gradients = [reply.train.gradient for reply in members]
    if len(members) >= MIN_REPLIES and rule == "multi-krum":
        members = [members[k] for k in multi_krum(updates, malicious)]
    elif len(members) >= MIN_REPLIES:
        aggregate = AGGREGATES[rule]
        update, gradient = aggregate(updates, malicious), aggregate(gradients, malicious)
        members = [replace(m, train=replace(m.train, update=update, gradient=gradient)) for m in members]
    return [replace(m, weight=1.0, train=replace(m.train, steps=steps)) for m in members]
