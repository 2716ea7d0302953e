"""Bound on the length of a round's replies, and what happens to those beyond it."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

from common.arrays import norm, scale
from common.reply_lengths import Lengths, typical
from common.wire.messages import LOCAL
from server.aggregation.folded_replies import are_folded
from server.aggregation.lengths import (
    FIRST_REFERENCE,
    LARGE_ROUND,
    Excess,
    allowances,
    find_excess,
    references,
    scale_update,
)
from server.aggregation.round_results import Load, Reply
from server.guard import RECENT_ROUNDS
from server.strategies.evaluation import EvaluatedStrategy
from server.strategies.spec import RoundParts


class BoundedStrategy(EvaluatedStrategy):
    """Base of strategies that compare the lengths of a round's replies."""

    def __init__(self, parts: RoundParts) -> None:
        super().__init__(parts)
        self._typical: Lengths = {}
        self._shortened: dict[str, str] = {}

    def _bound(self, replies: list[Reply], phase: str) -> tuple[list[Reply], dict[str, str]]:
        """Return the replies that count, and client -> reason for those beyond `federation.norm-bound`."""
        if not self.config.federation.norm_bound:
            return replies, {}
        excess = self._find_excess(replies, phase)
        needed = self._find_needed(replies, excess) if phase == LOCAL else ()
        self._shortened = {client: f"{excess[client].reason}; counts at the typical norm" for client in needed}
        left_out = {client: one.reason for client, one in excess.items() if client not in needed}
        counted = [reply for reply in replies if reply.client not in left_out]
        return [shorten(r, excess[r.client].factors) if r.client in needed else r for r in counted], left_out

    def _find_excess(self, replies: list[Reply], phase: str) -> dict[str, Excess]:
        steps = self.config.method_options.steps(phase)
        factors = {r.client: steps / r.train.steps if self.capabilities.per_step else 1.0 for r in replies}
        lengths = {r.client: scale_update(r.lengths, factors[r.client]) for r in replies}
        first = math.inf if self.cost else FIRST_REFERENCE * max(1.0, norm(self.state.model))
        limits = references([*lengths.values()], self._past if phase == LOCAL else [], first)
        allowed = allowances({r.client: r.weight for r in replies})
        excess = find_excess(lengths, limits, self.config.federation.norm_bound, allowed)
        if phase == LOCAL:
            self._typical = typical([one for client, one in lengths.items() if client not in excess])
        return excess

    def _find_needed(self, replies: list[Reply], excess: Mapping[str, Excess]) -> Collection[str]:
        """Return clients whose reply is too long for the last rounds, but counts at the typical norm.

        One or two replies cannot judge each other, and honest ones can grow: after an absence, or after a step that
        spoiled the model. They count if the other clients do not make a quorum. In a federation of fewer than
        `LARGE_ROUND` clients they also count after `RECENT_ROUNDS` replies in a row that were left out.
        """
        guard, roster, following = self.state.guard, self.enrolment.roster, self.state.round + 1
        present = roster.select_trainable(roster.present)
        others = [name for name in present if name not in excess and not guard.sits_out(name, following)]
        can_judge = len(replies) > 2 or are_folded(replies) or not self._past
        no_quorum = len(others) < self.config.federation.min_replies
        waited = {client for client, number in guard.left_out.items() if number >= RECENT_ROUNDS}
        needed = set() if can_judge else {client for client in excess if no_quorum or client in waited}
        if len(present) < LARGE_ROUND:
            accepted = [reply.client for reply in replies if reply.client not in excess]
            self.state = replace(self.state, guard=guard.count(excess.keys() - needed, accepted))
        return needed

    @property
    def _past(self) -> list[Lengths]:
        """Typical lengths of the last rounds; none if no other client ever took part."""
        is_alone = len({*self.enrolment.roster.by_name(), *self.state.counted}) == 1
        return [] if is_alone else self.state.guard.past(self._noise)

    @property
    def _noise(self) -> str:
        """Name of the round's noise, on which the length of an update depends."""
        return f"{self.cost:.6g} {self.clip:.6g}"


def shorten(reply: Reply, factors: Mapping[str, float]) -> Reply:
    """Return the reply with each kind of arrays, `update` or `gradient`, multiplied by its factor."""
    by_kind = {"update": 1.0, "gradient": 1.0, **factors}
    update, gradient = scale(reply.train.update, by_kind["update"]), scale(reply.train.gradient, by_kind["gradient"])
    return replace(
        reply,
        train=replace(reply.train, update=update, gradient=gradient),
        lengths={kind: by_kind[kind] * length for kind, length in reply.lengths.items()},
        stored=reply.stored and {kind: _scaled(load, by_kind[kind]) for kind, load in reply.stored.items()},
    )


def _scaled(load: Load, factor: float) -> Load:
    return lambda: scale(load(), factor)
