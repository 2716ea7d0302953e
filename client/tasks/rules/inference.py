"""Recommendations of rules by a finished model; on the client, for its own home."""

from dataclasses import dataclass

import numpy as np

from client.tasks.rules.data.homes import Home, Homes, as_edges, describe
from client.tasks.rules.data.split import Examples, SplitHome
from client.tasks.rules.learner import RulesLearner
from common.arrays import Arrays
from common.config.run import RunConfig
from common.models import tensors
from common.tasks.rules.counts import COUNTS
from common.tasks.rules.task import TASK
from common.tasks.rules.vocabulary import RuleCatalogue


@dataclass(frozen=True)
class Recommendation:
    """A recommended rule."""

    rule: str
    """The rule as a sentence."""
    probability: float
    """Probability of a rule against a sampled non-rule (Eq 1); it ranks, and is no frequency."""


def recommend(
    config: RunConfig, catalogue: RuleCatalogue, trained: Arrays, home: Home, top: int
) -> list[Recommendation]:
    """Return the `top` likeliest rules between different devices that a home does not have, best first.

    If the catalogue states the triggers and actions of devices, only rules that they support are returned.
    """
    none = as_edges([])
    whole = SplitHome(home, Examples(home.rules, none), Examples(none, none), Examples(none, none))
    learner = RulesLearner(config.task_run(TASK, catalogue), Homes((), catalogue))
    model = {name: a for name, a in trained.items() if name != COUNTS}
    statics = {name: a for name, a in trained.items() if name == COUNTS}
    logits = learner.scores(tensors(model), statics, whole)

    logits[tuple(home.rules.T)] = -np.inf
    logits[np.diag_indices(len(home.devices))] = -np.inf
    types = np.array([device.entity for device in home.devices], np.int64)
    triggers, actions = (able[types] for able in catalogue.possible())
    logits[~(triggers[:, None] & actions[None])] = -np.inf
    best = np.argsort(logits, axis=None, kind="stable")[::-1][:top]
    triples = np.stack(np.unravel_index(best, logits.shape), axis=1).tolist()
    return [
        Recommendation(describe(home, (i, j, r), catalogue), float(1 / (1 + np.exp(-logits[i, j, r]))))
        for i, j, r in triples
        if np.isfinite(logits[i, j, r])
    ]
