"""Rows of a client's own items, mixed with rows of randomly drawn pseudo items (algorithms.md §4.7).

The same noise is added to the numbers of all rows, so the numbers do not reveal which rows are real.
The ids of all rows are sent in plaintext. Pseudo items change every round; an item named in every round is the client's own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from client.privacy.transforms import Update, Work
from client.tasks.learner import HasItemRows
from common.arrays import Ints
from common.wire.sparse_rows import ROWS, VALUES


@dataclass(frozen=True)
class AddPseudoItems:
    """Select step: send some rows of the table of items in place of the whole table.

    Args:
        learner: Client data that name items.
        round: Number of the round.
        count: Number of pseudo items.
        generator: Factory of the random generator; a new one for each draw.
    """

    learner: HasItemRows
    round: int
    count: int
    generator: Callable[[], np.random.Generator]

    def __call__(self, work: Work) -> Work:
        """Return work whose update holds the rows of own and of pseudo items, with their ids."""
        own, table = self.learner.own_items(self.round), f"update/{self.learner.table}"

        def rows() -> Update:
            update = work()
            items = update.arrays[table]
            ids = draw_items(own, len(items), self.count, self.generator())
            rest = {name: a for name, a in update.arrays.items() if name != table}
            named = {table + ROWS: ids, table + VALUES: items[ids]}
            return replace(update, arrays={**rest, **named}, ids=frozenset({table + ROWS}))

        return rows


def draw_items(own: Ints, items: int, count: int, rng: np.random.Generator) -> Ints:
    """Return the own items and `count` pseudo items, or as many as exist; ascending, to reveal nothing."""
    unrated = np.setdiff1d(np.arange(items), own)
    pseudo = rng.choice(unrated, min(count, len(unrated)), replace=False)
    return np.sort(np.concatenate([own, pseudo]).astype(np.int64))
