"""Stacks: tensors of several clients along a new dimension 0, with rows that clients touch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch

from common.arrays import Array, Arrays

if TYPE_CHECKING:
    from torch import Tensor

Tensors = dict[str, "Tensor"]
"""Tensors by parameter name."""

T = TypeVar("T", "Tensor", Array)


def stack(members: Sequence[Tensors]) -> Tensors:
    """Stack along a new dimension 0, zero-padded to the largest of a name; one alone may be a view."""
    return {name: _stack_padded([m[name] for m in members]) for name in members[0]}


ValueT = TypeVar("ValueT")


def move(value: ValueT, device: str | torch.device) -> ValueT:
    """Return a tensor, or a mapping, sequence or dataclass of tensors, on a device.

    Tensors that are there stay. Apple's GPUs have no double precision; such numbers become single there.
    """
    found: Any = value
    if isinstance(value, torch.Tensor):
        is_too_precise = torch.device(device).type == "mps" and value.dtype == torch.float64
        found = value.to(device, torch.float32 if is_too_precise else value.dtype)
    elif isinstance(value, Mapping):
        found = {name: move(one, device) for name, one in value.items()}
    elif isinstance(value, list | tuple):
        found = type(value)(move(one, device) for one in value)
    elif is_dataclass(value) and not isinstance(value, type):
        found = replace(value, **{field.name: move(getattr(value, field.name), device) for field in fields(value)})
    return cast("ValueT", found)


def new_tensors_on(device: torch.device) -> AbstractContextManager[object]:
    """Let PyTorch create tensors without a named device on this one, such as the constants of a loss."""
    return nullcontext() if device.type == "cpu" else device


def device_of(tensors: Tensors) -> torch.device:
    """Return the device of these tensors."""
    return next(iter(tensors.values())).device


def at(stacked: Mapping[str, T], k: int) -> dict[str, T]:
    """Return views of client k's tensors or arrays."""
    return {n: t[k] for n, t in stacked.items()}


def to_arrays(tensors: Tensors) -> Arrays:
    """Return the tensors as arrays in the same memory."""
    return {n: t.numpy() for n, t in tensors.items()}


def row(stacked: Tensors, k: int) -> Tensors:
    """Return a copy of client k's tensors, which does not keep the whole cohort in memory."""
    return {n: t[k].clone() for n, t in stacked.items()}


def select(tensors: Tensors, names: Collection[str]) -> Tensors:
    """Return the tensors of those names."""
    return {n: t for n, t in tensors.items() if n in names}


def are_finite(updates: Tensors) -> list[bool]:
    """Return True for each client whose update has neither NaN nor infinity.

    Finite sums have finite terms. Terms of other sums, which may have overflowed, are examined one by one.
    """
    if torch.stack([u.flatten(1).sum(1) for u in updates.values()]).isfinite().all():
        return [True] * len(next(iter(updates.values())))
    finite: list[bool] = torch.stack([u.isfinite().flatten(1).all(1) for u in updates.values()]).all(0).tolist()
    return finite


def _stack_padded(members: Sequence[Tensor]) -> Tensor:
    # bits of matrix products depend on the place in memory, which PyTorch aligns to 64 bytes
    if len(members) == 1 and members[0].is_contiguous() and members[0].data_ptr() % 64 == 0:
        return members[0].unsqueeze(0)
    shapes = {m.shape for m in members}
    if len(shapes) == 1:
        return torch.stack(list(members))
    size = [max(lengths) for lengths in zip(*shapes, strict=True)]
    stacked = members[0].new_zeros((len(members), *size))
    for shape in shapes:
        equal = [k for k, member in enumerate(members) if member.shape == shape]
        where: tuple[Tensor | slice, ...] = torch.tensor(equal), *map(slice, shape)
        stacked[where] = torch.stack([members[k] for k in equal])
    return stacked


def cross_entropies(logits: Tensor, targets: Tensor) -> Tensor:
    """Return −log softmax of N × M logits at N targets.

    PyTorch's `cross_entropy` gives the same, but imports SymPy under `vmap`, which takes 19 MB of a client.
    """
    return -logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


TOUCHED = "touched"
"""Group of stacked client state that describes its short tables; it is no state of a client."""

IDS = "ids"
"""Name in that group of the clients' own rows, beside the tables with their number of rows."""

WIDTH = 16
"""Short tables are filled to a multiple of it.

PyTorch rounds the numbers after the last whole vector of a processor in another way.
"""


@dataclass(frozen=True, eq=False)
class OwnRows:
    """Rows of tables that stacked clients have of their own.

    Args:
        tables: Names of the tables, which have the same rows.
        ids: Ids of each client's own rows, K × T.
        total: Number R of rows of a whole table.
    """

    tables: Collection[str]
    ids: Tensor
    total: int

    @property
    def group(self) -> Tensors:
        """State group that describes these rows; inverse of `own_rows_of`."""
        return {IDS: self.ids, **dict.fromkeys(sorted(self.tables), torch.tensor([self.total]))}

    def shorten(self, model: Tensors) -> Tensors:
        """Return one model with the tables of K clients in short form; other tensors stay without clients."""
        spare = torch.zeros(-(self.ids.numel() + self.total) % WIDTH, dtype=torch.int64)
        rows = torch.cat([self.ids.flatten(), torch.arange(self.total), spare])
        return {n: t[rows] if n in self.tables else t for n, t in model.items()}

    def select(self, groups: Mapping[str, Tensors], places: Sequence[int]) -> dict[str, Tensors]:
        """Return stacked groups with these short tables, of the clients at these places alone."""
        of_clients, first = torch.arange(self.ids.numel()).view_as(self.ids)[places].flatten(), self.ids.numel()
        spare = torch.full((-(len(of_clients) + self.total) % WIDTH,), first)
        rows = torch.cat([of_clients, torch.arange(first, first + self.total), spare])
        selected = {
            group: {n: t[rows] if n in self.tables else t[places] for n, t in named.items()}
            for group, named in groups.items()
            if group != TOUCHED
        }
        return {**selected, TOUCHED: OwnRows(self.tables, self.ids[places], self.total).group}

    def take(self, short: Tensors) -> Tensors:
        """Return views with the own rows of each client, K × T × …, in place of the tables."""
        return {n: self._rows_of(t) if n in self.tables else t for n, t in short.items()}

    def fill(self, rows: Tensors, like: Tensors) -> Tensors:
        """Return short tables of these own rows, and zeros for the rest; inverse of `take`."""
        count = self.ids.numel()
        return {
            n: torch.cat([t.flatten(0, 1), t.new_zeros(len(like[n]) - count, *t.shape[2:])]) if n in self.tables else t
            for n, t in rows.items()
        }

    def lengthen(self, short: Tensors) -> Tensors:
        """Return all tensors K × …, with whole tables."""
        client = torch.arange(len(self.ids)).unsqueeze(1)
        rows, whole = self.take(short), dict(short)
        for table in self.tables & short.keys():
            rest = self._rest(short[table])
            whole[table] = rest.expand(len(self.ids), *rest.shape).contiguous()
            whole[table][client, self.ids] = rows[table]
        return whole

    def at(self, short: Tensors, k: int) -> Tensors:
        """Return the tensors of client k, with whole tables."""
        one = {n: t[k] for n, t in self.take(short).items()}
        for table in self.tables & short.keys():
            one[table] = self._rest(short[table]).index_copy(0, self.ids[k], one[table])
        return one

    def _rows_of(self, short: Tensor) -> Tensor:
        return short[: self.ids.numel()].view(*self.ids.shape, *short.shape[1:])

    def _rest(self, short: Tensor) -> Tensor:
        return short[self.ids.numel() :][: self.total]


def own_rows_of(groups: Mapping[str, Tensors]) -> OwnRows | None:
    """Return the rows by which these stacked groups are short; None if they are whole."""
    if TOUCHED not in groups:
        return None
    tables = {**groups[TOUCHED]}
    ids = tables.pop(IDS)
    return OwnRows(frozenset(tables), ids, int(next(iter(tables.values()))))
