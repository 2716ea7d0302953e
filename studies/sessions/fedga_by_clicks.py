"""FedGA that reports how clients agree on rows of the item table, by clicks on the item."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from client.tasks.sessions.data.visitors import Visitor, split_visitor
from client.trainers.base import ClientMethod
from client.trainers.fedavg import FedAvgTrainer
from client.trainers.registry import CLIENT_METHODS
from common.arrays import Array, Arrays
from common.config.run import RunConfig
from common.contribution import Contribution
from common.methods.base import MethodSpec
from common.methods.fedavg import FedGA
from common.methods.registry import METHODS
from common.tasks.sessions.task import TASK
from server.methods.fedga import FedGA as FedGAStep
from server.methods.registry import SERVER_METHODS
from server.round.method import Groups, RoundContext, ServerMethod
from studies.sessions.clicked_items import GROUPS, LEAST, METHOD, QUANTILES, names_of

ReadVisitors = Callable[[], Sequence[Visitor]]

TABLE = "embedding.weight"
"""Item table of the paper's model; item j is row j + 1."""


class FedGAByClicks(FedGA):
    """FedGA under the name of the study."""

    name: ClassVar[str] = METHOD


class ByClicks(FedGAStep):
    """FedGA whose rounds report the agreement of the clients; the model is the same.

    Args:
        read: Returns the data of all clients, in the order of their numbers. Only a simulation has them on the server.
        options: Options of the method.
    """

    def __init__(self, read: ReadVisitors, options: FedGAByClicks) -> None:
        super().__init__(options)
        self.read, self.clicked = read, dict[str, Array]()

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        """Return the step of FedGA, with the agreement as a further group of the state."""
        mean, magnitude = (arrays[TABLE][1:] for arrays in total.mean_and_magnitude())
        clicked = self._clicked(at.config)
        items = np.concatenate([clicked[name] for name in total.names])
        numbers = agreement(mean, magnitude, np.bincount(items, minlength=len(mean)))
        model, after = super().update(at, state, model, total)
        return model, {**after, "agreement": {name: np.array(number) for name, number in numbers.items()}}

    def _clicked(self, config: RunConfig) -> dict[str, Array]:
        """Return client -> items in its training data."""
        if not self.clicked:
            splits = [split_visitor(one, config.options_of(TASK), config.seed) for one in self.read()]
            self.clicked = {f"client-{k}": np.unique(np.concatenate(split.train)) for k, split in enumerate(splits)}
        return self.clicked

    def diagnostics(self, at: RoundContext, state: Groups) -> dict[str, float]:
        """Return quantiles of the server's step sizes, and the agreement of each group of items."""
        return super().diagnostics(at, state) | {name: float(number) for name, number in state["agreement"].items()}


def agreement(mean_update: Array, magnitude: Array, clients: Array) -> dict[str, float]:
    """Return share, quantiles of |Δ̄|/Δ' and relative Δ' of each group of items that has one.

    Args:
        mean_update: Δ̄ of the item table, items × width.
        magnitude: Δ', of the same shape.
        clients: Number of clients that clicked each item.
    """
    ends = [*list(LEAST.values())[1:], np.inf]
    found: dict[str, float] = {}
    for group, end in zip(GROUPS, ends, strict=True):
        rows = (clients >= LEAST[group]) & (clients < end)
        moved = magnitude[rows] > 0
        if moved.any():
            ratios = np.abs(mean_update[rows][moved]) / magnitude[rows][moved]
            quantiles = np.percentile(ratios, [int(name.removeprefix("p")) for name in QUANTILES])
            numbers = (rows.mean(), *quantiles, magnitude[rows].mean() / magnitude.mean())
            found |= {name: float(number) for name, number in zip(names_of(group), numbers, strict=True)}
    return found


def register(read: ReadVisitors) -> None:
    """Add the method to the registries of this process; `read` returns the data of all clients."""
    spec = MethodSpec(FedGAByClicks, "FedGA with the agreement of clients by clicks", default_task=TASK.name)
    METHODS.add(spec)
    CLIENT_METHODS.add(ClientMethod(spec, FedAvgTrainer))
    SERVER_METHODS.add(ServerMethod(spec, partial(ByClicks, read)))
