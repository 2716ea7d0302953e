"""Rows of a client's own items among rows of items drawn at random: the paper's way (algorithms.md §4.7).

Noise goes on the numbers of all rows alike, so no row tells by its numbers whether it is real. That a row was sent is in clear:
the drawn items change every round, and what is named in every round is the client's own.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from client.tasks.learner import HasItemRows
from common.config.run import RunConfig
from common.wire.messages import TrainReply
from common.wire.sparse_rows import ROWS, VALUES

Ids = NDArray[np.int64]


def among_pseudo_items(
    work: Callable[[], TrainReply],
    learner: object,
    config: RunConfig,
    round_number: int,
    generator: Callable[[], np.random.Generator],
) -> Callable[[], TrainReply]:
    """Work whose reply holds some rows of the learner's table of items in place of the table.

    Args:
        work: The training.
        learner: Whose items are its own.
        config: Whether clients name items in this run, else nothing changes, and how many others are drawn.
        round_number: Of which round.
        generator: Where the draw comes from; a new one each time.
    """
    rows = config.task_options.named_rows
    if rows is None or not isinstance(learner, HasItemRows):
        return work
    own, number = learner.own_items(round_number), rows.pseudo

    def work_among_pseudo() -> TrainReply:
        reply = work()
        table = reply.update[learner.table]
        ids = drawn(own, len(table), number, generator())
        others = {name: a for name, a in reply.update.items() if name != learner.table}
        return replace(reply, update={**others, learner.table + ROWS: ids, learner.table + VALUES: table[ids]})

    return work_among_pseudo


def drawn(own: Ids, items: int, number: int, rng: np.random.Generator) -> Ids:
    """The own items and `number` others of all `items`, or as many as there are, in ascending order: it tells nothing apart."""
    others = np.setdiff1d(np.arange(items), own)
    pseudo = rng.choice(others, min(number, len(others)), replace=False)
    return np.sort(np.concatenate([own, pseudo]).astype(np.int64))
