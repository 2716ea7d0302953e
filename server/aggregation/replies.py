"""Training replies of a round, single or in blocks: checks of the sums, and the total. NumPy."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from common.arrays import Array, Arrays, check_like, norm, total_of
from common.contribution import GRADIENT, MAGNITUDE, UPDATE, BlockReply, ClientBlock, Contribution, Lengths, Member
from common.errors import WireError
from common.tasks.options import Capabilities
from common.wire.messages import TrainReply
from common.wire.sparse_rows import ROWS

Load = Callable[[], Arrays]
"""Returns stored arrays; each call reads those on disk anew."""

Rows = Mapping[str, NDArray[np.integer]]
"""Table -> ids of the rows that were sent; a missing table was sent in full."""

ROUNDING = 1e-6
"""Relative excess that rounding explains."""


@dataclass(frozen=True)
class Reply:
    """Valid training reply of a client.

    Args:
        client: Name of the client.
        weight: Weight in means.
        train: Reply with full tables, or with their gathered rows in runs whose local steps gather rows.
        rows: Row ids in the reply, in runs whose clients send them; empty if missing rows are zeros.
        lengths: Norms of its arrays.
        stored: Arrays of `train` by field, which then has none itself; None if `train` has them.
    """

    client: str
    weight: float
    train: TrainReply
    rows: Rows = field(default_factory=dict)
    lengths: Lengths = field(default_factory=dict)
    stored: Mapping[str, Load] | None = None

    @property
    def update(self) -> Arrays:
        """Δ_k; a stored one is read anew."""
        return self.train.update if self.stored is None else self.stored["update"]()

    @property
    def gradient(self) -> Arrays:
        """s_k; a stored one is read anew."""
        return self.train.gradient if self.stored is None else self.stored["gradient"]()

    @property
    def member(self) -> Member:
        """The client in a contribution."""
        return Member(self.client, self.weight, self.train.steps, self.train.loss, self.lengths)


def add_up(replies: Sequence[Reply], capabilities: Capabilities, tables: Arrays | None = None) -> Contribution:
    """Return the total of whole blocks and single replies, with one reply in memory at a time.

    Args:
        replies: Replies of whole blocks and single ones.
        capabilities: Capabilities of the method.
        tables: Model whose tables the updates may hold as rows; None if all updates have full tables.
    """
    total = Contribution(per_step=capabilities.per_step, magnitude=capabilities.needs_magnitude, tables=tables)
    for block in blocks_of(replies):
        total.merge(block.sums)
    single = [reply for reply in replies if not isinstance(reply.train, BlockReply)]
    for reply in single:
        total.add(reply.member, reply.update, reply.gradient)
    return total if len(single) < len(replies) else total.with_replies(single)


def shorten(reply: Reply, factors: Mapping[str, float], *, counts_clients: bool = False) -> Reply:
    """Return the reply with each kind of arrays, `update` or `gradient`, multiplied by its factor.

    Row ids stay as they are. So does the last column of tables whose rows `counts_clients`.
    """
    by_kind = {UPDATE: 1.0, GRADIENT: 1.0, **factors}

    def shortened(arrays: Arrays, kind: str) -> Arrays:
        found = {n: a if n.endswith(ROWS) else (a * by_kind[kind]).astype(a.dtype) for n, a in arrays.items()}
        for name in [name for name, a in arrays.items() if counts_clients and a.ndim == 2]:
            found[name][:, -1] = arrays[name][:, -1]
        return found

    def delayed(load: Load, kind: str) -> Load:
        return lambda: shortened(load(), kind)

    update, gradient = shortened(reply.train.update, UPDATE), shortened(reply.train.gradient, GRADIENT)
    return replace(
        reply,
        train=replace(reply.train, update=update, gradient=gradient),
        lengths={kind: by_kind[kind] * length for kind, length in reply.lengths.items()},
        stored=reply.stored and {kind: delayed(load, kind) for kind, load in reply.stored.items()},
    )


def with_update(reply: Reply, load: Load) -> Reply:
    """Return the reply with this update, which is read when it is needed if the reply is stored."""
    if reply.stored is None:
        return replace(reply, train=replace(reply.train, update=load()))
    return replace(reply, stored={**reply.stored, UPDATE: load})


def average_by_row(replies: list[Reply]) -> list[Reply]:
    """Rescale the replies: their mean is then, for every row, the mean over the clients that sent the row."""
    updates = rescale_rows([r.train.update for r in replies], [r.rows for r in replies], [r.weight for r in replies])
    return [replace(r, train=replace(r.train, update=u)) for r, u in zip(replies, updates, strict=True)]


def rescale_rows(updates: Sequence[Arrays], rows: Sequence[Rows], weights: Sequence[float]) -> list[Arrays]:
    """Return updates whose weighted mean is, per row, the weighted mean over the row's senders.

    Row i of Δ_k is multiplied by W/W_i, with W = Σ_k w_k and W_i the same sum over the senders of row i. Methods need no
    change.

    Args:
        updates: Δ_k with full tables (n × d), zero in rows that were not sent.
        rows: Ids of the sent rows.
        weights: w_k.
    """
    total, sent = total_of(weights), {name for ids in rows for name in ids}
    factors = {}
    for name in sorted(sent):
        weight = np.zeros(len(updates[0][name]))
        for ids, w in zip(rows, weights, strict=True):
            weight[ids.get(name, slice(None))] += w
        factors[name] = np.divide(total, weight, out=np.zeros_like(weight), where=weight > 0)[:, None]
    return [{n: (a * factors[n]).astype(a.dtype) if n in factors else a for n, a in u.items()} for u in updates]


def are_summed(replies: Sequence[Reply]) -> bool:
    """Return True if the arrays of a reply are in the sums of a block."""
    return any(isinstance(reply.train, BlockReply) for reply in replies)


def blocks_of(replies: Sequence[Reply]) -> list[ClientBlock]:
    """Return the blocks of these replies, in order."""
    found = {id(r.train.block): r.train.block for r in replies if isinstance(r.train, BlockReply)}
    return sorted(found.values(), key=lambda block: (block.number, block.clients))


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
    for block in blocks_of(replies):
        if missing := [client for client in block.clients if client not in usable]:
            fault = f"its reply is in one sum with that of {missing[0]}"
        else:
            fault = find_fault(block.sums, [usable[client] for client in block.clients], model, capabilities)
        faults |= dict.fromkeys(block.clients, fault) if fault else {}
    rejected |= {client: fault for client, fault in faults.items() if client in usable}
    return [reply for reply in replies if reply.client not in faults]


def find_fault(sums: Contribution, members: Sequence[Reply], model: Arrays, capabilities: Capabilities) -> str:
    """Return the reason why a sum cannot be that of its members; empty if it can.

    Their lengths bound the length of the sum, so a bound on lengths holds for sums as for single replies.
    """
    try:
        _check_form(sums, model, capabilities)
        _check_weights(sums, members)
        _check_lengths(sums, members, capabilities)
    except WireError as error:
        return f"the sum with its reply is left out: {error}"
    return ""


def _check_form(sums: Contribution, model: Arrays, capabilities: Capabilities) -> None:
    expected = {UPDATE, MAGNITUDE} if capabilities.needs_magnitude else {UPDATE}
    if capabilities.needs_gradient or GRADIENT in sums.sums:
        expected.add(GRADIENT)
    if unknown := sums.sums.keys() - expected:
        raise WireError(f"it has sums of {min(unknown)}, which the method does not need")
    template: dict[str, Array] = {name: np.broadcast_to(np.float64(0), a.shape) for name, a in model.items()}
    for kind in sorted(expected):
        check_like(sums.sums.get(kind, {}), template, f"sum of {kind}s")
    if sums.dtypes != {name: a.dtype for name, a in model.items()}:
        raise WireError("the types of its arrays are not those of the model")


def _check_weights(sums: Contribution, members: Sequence[Reply]) -> None:
    weight = total_of(reply.weight for reply in members)
    if not math.isclose(sums.weight, weight, rel_tol=ROUNDING):
        raise WireError(f"its weight is {sums.weight:g}, and {weight:g} by the records of its clients")
    steps = total_of(reply.weight * reply.train.steps for reply in members)
    if not math.isclose(sums.weighted_steps, steps, rel_tol=ROUNDING):
        raise WireError(f"its local steps are {sums.weighted_steps:g}, and {steps:g} by the replies of its clients")


def _check_lengths(sums: Contribution, members: Sequence[Reply], capabilities: Capabilities) -> None:
    longest = {UPDATE: 0.0, GRADIENT: 0.0}
    for reply in members:
        lengths = reply.train.lengths if isinstance(reply.train, BlockReply) else {}
        if not all(0 <= length < math.inf for length in lengths.values()):
            raise WireError(f"the length of a reply of '{reply.client}' is not a finite number from 0 on")
        steps = reply.train.steps if capabilities.per_step else 1
        longest[UPDATE] += reply.weight / steps * lengths.get(UPDATE, 0.0)
        longest[GRADIENT] += reply.weight * lengths.get(GRADIENT, 0.0)
    for kind, arrays in sums.sums.items():
        _check_length(arrays, longest[GRADIENT if kind == GRADIENT else UPDATE], f"{kind}s")
    largest = sums.sums.get(MAGNITUDE, {})
    if any((np.abs(sums.sums[UPDATE][n]) > a * (1 + ROUNDING) + ROUNDING).any() for n, a in largest.items()):
        raise WireError("an update is larger than its magnitude")


def _check_length(named: Mapping[str, Array], most: float, what: str) -> None:
    with np.errstate(over="ignore"):
        length = norm(named)
    if not length <= most * (1 + ROUNDING) + ROUNDING:
        raise WireError(f"the sum of {what} has norm {length:.3g}, its parts {most:.3g} at most")
