"""Check of a sum of replies against what each of its clients reports. Pure, NumPy."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from common.arrays import Array, Arrays, check_like, norm
from common.errors import WireError
from common.methods.spec import Capabilities
from common.reply_sums import BlockReply, Folded
from server.aggregation.round_results import Reply

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
