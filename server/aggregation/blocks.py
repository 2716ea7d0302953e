"""Replies of a round whose arrays are in sums of blocks, and checks of these sums. Pure, NumPy."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from common.arrays import Array, Arrays, check_like, norm
from common.contribution import BlockReply, ClientBlock, Folded
from common.errors import ConfigError, WireError
from common.tasks.options import Capabilities
from server.aggregation.results import Rate, Reply

ROUNDING = 1e-6
"""Relative excess that rounding explains."""


def find_fault(sums: Folded, members: Sequence[Reply], model: Arrays, capabilities: Capabilities) -> str:
    """Return the reason why a sum cannot be that of its members; empty if it can.

    Their lengths bound the length of the sum, so a bound on lengths holds for sums as for single replies.

    Args:
        sums: The sum.
        members: Replies of all its clients.
        model: Arrays that updates match.
        capabilities: Capabilities of the method.
    """
    try:
        _check_form(sums, model, capabilities)
        _check_weights(sums, members)
        _check_lengths(sums, members, capabilities)
    except WireError as error:
        return f"the sum with its reply is left out: {error}"
    return ""


def _check_form(sums: Folded, model: Arrays, capabilities: Capabilities) -> None:
    parts = {f"update after {steps} steps": named for steps, named in sums.updates.items()}
    if capabilities.needs_magnitude:
        parts |= {f"magnitude after {steps} steps": sums.magnitudes.get(steps, {}) for steps in sums.updates}
    if capabilities.needs_gradient or sums.gradient:
        parts["gradient"] = sums.gradient
    template: dict[str, Array] = {name: np.broadcast_to(np.float64(0), a.shape) for name, a in model.items()}
    for what, named in parts.items():
        check_like(named, template, f"sum of {what}")
    if sums.dtypes != {name: a.dtype for name, a in model.items()}:
        raise WireError("the types of its arrays are not those of the model")


def _check_weights(sums: Folded, members: Sequence[Reply]) -> None:
    expected: dict[int, float] = defaultdict(float)
    for reply in members:
        expected[reply.train.steps] += reply.weight
    if sums.weights.keys() != expected.keys():
        raise WireError(f"it is over {sorted(sums.weights)} local steps, its clients made {sorted(expected)}")
    for steps, weight in expected.items():
        if not math.isclose(sums.weights[steps], weight, rel_tol=ROUNDING):
            raise WireError(f"its weight is {sums.weights[steps]:g}, and {weight:g} by the records of its clients")


def _check_lengths(sums: Folded, members: Sequence[Reply], capabilities: Capabilities) -> None:
    longest: dict[tuple[str, int], float] = defaultdict(float)
    for reply in members:
        lengths = reply.train.lengths if isinstance(reply.train, BlockReply) else {}
        if not all(0 <= length < math.inf for length in lengths.values()):
            raise WireError(f"the length of a reply of '{reply.client}' is not a finite number from 0 on")
        longest["update", reply.train.steps] += reply.weight * lengths.get("update", 0.0)
        longest["gradient", 0] += reply.weight * lengths.get("gradient", 0.0)
    for steps, update in sums.updates.items():
        _check_length(update, longest["update", steps], "updates")
        if capabilities.needs_magnitude:
            _check_length(sums.magnitudes[steps], longest["update", steps], "magnitudes")
            if any(
                (np.abs(a) > sums.magnitudes[steps][n] * (1 + ROUNDING) + ROUNDING).any() for n, a in update.items()
            ):
                raise WireError("an update is larger than its magnitude")
    _check_length(sums.gradient, longest["gradient", 0], "gradients")


def _check_length(named: Mapping[str, Array], most: float, what: str) -> None:
    with np.errstate(over="ignore"):
        length = norm(named)
    if not length <= most * (1 + ROUNDING) + ROUNDING:
        raise WireError(f"the sum of {what} has norm {length:.3g}, its parts {most:.3g} at most")


@dataclass(frozen=True)
class FoldedReplies:
    """Sums over all clients of whole blocks, and over single replies.

    Args:
        members: Replies in the order of client names.
        sums: Sums over all of them.
        per_step: True if means are of updates per local step.
    """

    members: list[Reply]
    sums: Folded
    per_step: bool = True

    @property
    def names(self) -> list[str]:
        """Names of the clients, in order."""
        return [reply.client for reply in self.members]

    @property
    def steps(self) -> Mapping[str, int]:
        """Client -> number τ_k of its local steps."""
        return {reply.client: reply.train.steps for reply in self.members}

    @property
    def replies(self) -> list[Reply]:
        """Single replies, which sums do not have.

        Raises:
            ConfigError: Always; replies are summed for methods with the capability `sum_only` alone.
        """
        raise ConfigError("this method needs single replies, and this round has sums alone")

    def mean_update(self) -> Arrays:
        """Return Δ̄."""
        return self._scaled(self.sums.updates)

    def mean_gradient(self) -> Arrays:
        """Return s̄."""
        return self._as_stored({name: a / self._weight for name, a in self.sums.gradient.items()})

    def mean_direction(self, rate: Rate) -> Arrays:
        """Return the weighted mean of Δ_k/(ητ_k)."""
        summed = _sum_over_steps(self.sums.updates, {steps: 1 / steps for steps in self.sums.updates})
        return self._as_stored({name: a / (rate(name) * self._weight) for name, a in summed.items()})

    def mean_and_magnitude(self) -> tuple[Arrays, Arrays]:
        """Return Δ̄ and Δ'."""
        return self.mean_update(), self._scaled(self.sums.magnitudes)

    @property
    def _weight(self) -> float:
        return sum(self.sums.weights.values())

    def _scaled(self, sums: Mapping[int, Arrays]) -> Arrays:
        """Return τ̄ · Σ_τ sum/τ over Σw, or without steps if means are not per step."""
        mean_steps = sum(weight * steps for steps, weight in self.sums.weights.items()) / self._weight
        factors = {steps: mean_steps / steps if self.per_step else 1.0 for steps in sums}
        return self._as_stored({n: a / self._weight for n, a in _sum_over_steps(sums, factors).items()})

    def _as_stored(self, arrays: Arrays) -> Arrays:
        return {name: a.astype(self.sums.dtypes[name]) for name, a in arrays.items()}


def collect(replies: list[Reply], *, per_step: bool, with_magnitude: bool) -> FoldedReplies:
    """Return the sums over all blocks and single replies, in their order."""
    total = Folded()
    for block in _blocks(replies):
        total.merge(block.sums)
    for reply in replies:
        if not isinstance(reply.train, BlockReply):
            update, gradient = ({n: a[None] for n, a in x.items()} for x in (reply.update, reply.gradient))
            total.add(reply.train.steps, np.array([reply.weight]), update, gradient, with_magnitude=with_magnitude)
    return FoldedReplies(replies, total, per_step)


def are_folded(replies: Sequence[Reply]) -> bool:
    """Return True if the arrays of a reply are in the sums of a block."""
    return any(isinstance(reply.train, BlockReply) for reply in replies)


def select_whole(
    replies: list[Reply], rejected: dict[str, str], model: Arrays, capabilities: Capabilities
) -> list[Reply]:
    """Return the replies of whole blocks and single ones; add clients of other blocks to `rejected`.

    Args:
        replies: Usable replies of the round.
        rejected: Client -> reason.
        model: Arrays that updates match.
        capabilities: Capabilities of the method.
    """
    usable = {reply.client: reply for reply in replies}
    faults: dict[str, str] = {}
    for block in _blocks(replies):
        if missing := [client for client in block.clients if client not in usable]:
            fault = f"its reply is in one sum with that of {missing[0]}"
        else:
            fault = find_fault(block.sums, [usable[client] for client in block.clients], model, capabilities)
        faults |= dict.fromkeys(block.clients, fault) if fault else {}
    rejected |= {client: fault for client, fault in faults.items() if client in usable}
    return [reply for reply in replies if reply.client not in faults]


def _blocks(replies: Sequence[Reply]) -> list[ClientBlock]:
    found = {id(r.train.block): r.train.block for r in replies if isinstance(r.train, BlockReply)}
    return sorted(found.values(), key=lambda block: (block.number, block.clients))


def _sum_over_steps(sums: Mapping[int, Arrays], factors: Mapping[int, float]) -> Arrays:
    ordered = sorted(sums)
    return {name: sum((factors[t] * sums[t][name] for t in ordered), np.zeros(())) for name in sums[ordered[0]]}
