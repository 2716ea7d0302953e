"""Tables of stacked clients as the rows that each of them touches, and one copy of the others.

A row has the same values in all clients that never touch it, and is stored once. Such a short table has K·T + R rows: T of
each of K clients, then all R rows of a client that touches none. Operations on single numbers change it as they change K
whole tables.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from client.stacked_tensors import Tensors

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
        own, first = torch.arange(self.ids.numel()).view_as(self.ids)[places].flatten(), self.ids.numel()
        spare = torch.full((-(len(own) + self.total) % WIDTH,), first)
        rows = torch.cat([own, torch.arange(first, first + self.total), spare])
        kept = {
            group: {n: t[rows] if n in self.tables else t[places] for n, t in named.items()}
            for group, named in groups.items()
            if group != TOUCHED
        }
        return {**kept, TOUCHED: OwnRows(self.tables, self.ids[places], self.total).group}

    def take(self, short: Tensors) -> Tensors:
        """Return views with the own rows of each client, K × T × …, in place of the tables."""
        return {n: self._own(t) if n in self.tables else t for n, t in short.items()}

    def fill(self, own: Tensors, like: Tensors) -> Tensors:
        """Return short tables of these own rows, and zeros for the rest; inverse of `take`."""
        count = self.ids.numel()
        return {
            n: torch.cat([t.flatten(0, 1), t.new_zeros(len(like[n]) - count, *t.shape[2:])]) if n in self.tables else t
            for n, t in own.items()
        }

    def lengthen(self, short: Tensors) -> Tensors:
        """Return all tensors K × …, with whole tables."""
        place = torch.arange(len(self.ids)).unsqueeze(1)
        own, whole = self.take(short), dict(short)
        for table in self.tables & short.keys():
            rest = self._rest(short[table])
            whole[table] = rest.expand(len(self.ids), *rest.shape).contiguous()
            whole[table][place, self.ids] = own[table]
        return whole

    def at(self, short: Tensors, k: int) -> Tensors:
        """Return the tensors of client k, with whole tables."""
        one = {n: t[k] for n, t in self.take(short).items()}
        for table in self.tables & short.keys():
            one[table] = self._rest(short[table]).index_copy(0, self.ids[k], one[table])
        return one

    def _own(self, short: Tensor) -> Tensor:
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
