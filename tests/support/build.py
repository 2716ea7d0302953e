"""Models, learners and strategies from a configuration, as runs build them."""

from collections.abc import Iterable
from typing import Any

from torch import nn

from client.data.dataset import Dataset
from client.tasks.registry import build_learner
from common.config.run import RunConfig
from common.models import build_model
from common.tasks.registry import TASKS
from common.tasks.vocabulary import Vocabulary
from server.compose import build_round
from server.round.round import Observer, Round
from server.round.state import RunState


def task_model(config: RunConfig, vocabulary: Vocabulary) -> nn.Module:
    """Build the model of the run's task."""
    spec = TASKS[config.task]
    return build_model(spec, config.task_run(spec, vocabulary))


def learner_of(config: RunConfig, vocabulary: Vocabulary, units: Iterable[Any]) -> Any:
    """Prepare units of data for a run."""
    return build_learner(config, Dataset(tuple(units), vocabulary))


def round_of(
    config: RunConfig, state: RunState, enrolment: Any, sums: Any = None, folder: Any = None, **callbacks: Any
) -> Round:
    """Build the round of a run."""
    return build_round(config, state, enrolment, Observer(**callbacks), sums=sums, folder=folder)


def head_of(task: str, names: Iterable[str]) -> frozenset[str]:
    """Return the parameters that form the private head."""
    return frozenset(name for name in names if name.startswith(TASKS[task].head))


def own_of(task: str, names: Iterable[str]) -> frozenset[str]:
    """Return the parameters that never leave a client."""
    return frozenset(name for name in names if TASKS[task].is_client_only(name))
