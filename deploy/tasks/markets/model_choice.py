"""Model that a market uses of a finished run: the shared one, or the one that a client stored."""

import numpy as np

from client.inference.stored_models import SINCE, StoredModel
from common.arrays import Arrays
from common.errors import ConfigError
from deploy.tasks.spec import TrainedRun


def model_of(run: TrainedRun, client: str) -> tuple[Arrays, str]:
    """Return the model with its summed statistics, and a note about its origin.

    Another run may have the same name. So a stored model counts only if its vocabulary and its shared parameters are the run's.

    Args:
        run: The run.
        client: Name of the client; empty for the one that trained on the data.

    Raises:
        ConfigError: The named client stored nothing of this run.
        DataError: The data cannot be read.
        StateError: The client's state is damaged.
    """
    stored = run.find_stored(client)
    if stored and not _is_of(stored, run):
        if client:
            raise ConfigError(
                f"--client {client}: its model is of another run '{run.name}' (other model or catalogue);"
                f" adapt it with fedloom join --adapt {run.name}, or remove --client"
            )
        stored = None
    note = f"by {_describe(stored, run.model)} run {run.name}"
    return ({**stored.model, **stored.statics} if stored else run.only_model), note


def _is_of(stored: StoredModel, run: TrainedRun) -> bool:
    return bool(stored.vocabulary == run.vocabulary) and _is_equal({**stored.shared, **stored.statics}, run.model)


def _is_equal(left: Arrays, right: Arrays) -> bool:
    """Return True if the two have arrays in common, and these are equal."""
    common = left.keys() & right.keys()
    return bool(common) and all(np.array_equal(left[name], right[name]) for name in common)


def _describe(stored: StoredModel | None, trained: Arrays) -> str:
    if stored is None:
        return "the shared model of"
    if _is_equal(stored.model, trained):
        return f"the shared model, without parameters of client {stored.client}, of"
    return f"the personalized model of client {stored.client}{f'{SINCE},' if stored.grown else ''} of"
