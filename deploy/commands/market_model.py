"""A finished run's model as a market would use it: with the part that a client here has made its own."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.arrays import Arrays
from common.errors import ConfigError
from common.tasks.markets.vocabulary import MarketCatalogue
from deploy.cli import options as o
from deploy.commands.stored_models import SINCE, StoredModel, find_stored_model


@dataclass(frozen=True)
class Holder:
    """Whose part of a model it is.

    Args:
        data: Source of markets.
        client: Name of the client; empty for who trained on these data.
        state_dir: Where clients keep their state.
    """

    data: str
    client: str
    state_dir: Path


def with_own_part(run: str, goods: MarketCatalogue, trained: Arrays, holder: Holder) -> Arrays:
    """The model that the holder would use of a run, or the run's where it keeps none; says on stderr which it is.

    A run is not known by its name alone: what the client was left with must be this catalogue and this very model.

    Args:
        run: Its name.
        goods: Its catalogue.
        trained: Its finished model, with the sums over markets where there are any.
        holder: Who asks.

    Raises:
        ConfigError: A client is named that keeps nothing of this run.
        DataError: The data cannot be read.
        StateError: What was kept is damaged.
    """
    kept = find_stored_model("markets", holder.data, run, holder.state_dir, holder.client)
    if kept and not _of_this(kept, goods, trained):
        if holder.client:
            raise ConfigError(
                f"--client {holder.client}: what it keeps is of another run '{run}', whose model or catalogue differs;"
                f" adapt it to this one with fedloom join --adapt {run}, or leave --client out"
            )
        kept = None
    o.note(f"{holder.data}: by {_described(kept, trained)} run {run}")
    return kept.model if kept else trained


def _of_this(kept: StoredModel, goods: MarketCatalogue, trained: Arrays) -> bool:
    return kept.names == goods and _alike(kept.told, trained)


def _alike(some: Arrays, others: Arrays) -> bool:
    """Whether they have arrays in common, and these are equal."""
    common = some.keys() & others.keys()
    return bool(common) and all(np.array_equal(some[name], others[name]) for name in common)


def _described(kept: StoredModel | None, trained: Arrays) -> str:
    if kept is None:
        return "the shared model of"
    if _alike(kept.model, trained):
        return f"the shared model, of which client {kept.client} has no part of its own, of"
    return f"the model that client {kept.client}{f'{SINCE},' if kept.grown else ''} made its own of"
