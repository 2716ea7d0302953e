"""Recommendations of rules by a finished model, or by a home's own rules; on the client."""

import numpy as np

from client.tasks.rules.data.homes import Home, Homes, as_edges
from client.tasks.rules.data.split import Examples, SplitHome
from client.tasks.rules.learner import RulesLearner
from client.tasks.rules.lists.answers import Recommendation, list_rules
from client.tasks.rules.lists.shown import ListOptions
from common.arrays import Arrays
from common.config.run import RunConfig
from common.models import tensors
from common.tasks.rules.counts import COUNTS, STATICS
from common.tasks.rules.task import TASK
from common.tasks.rules.vocabulary import RuleCatalogue

NONE_OWN = "no other pair of devices can take a rule that the home has"


def recommend(
    config: RunConfig,
    catalogue: RuleCatalogue,
    trained: Arrays,
    home: Home,
    options: ListOptions,
    *,
    by_baseline: bool = False,
) -> tuple[list[Recommendation], str]:
    """Return the rules to add to a home, and why there is none; see `list_rules`.

    The baseline ranks relations by their frequency in the home's own rules; it shows no others.
    """
    none = as_edges([])
    whole = SplitHome(home, Examples(home.rules, none), Examples(none, none), Examples(none, none))
    learner = RulesLearner(config.task_run(TASK, catalogue), Homes((), catalogue))
    if by_baseline:
        has = np.isin(np.arange(len(catalogue.relations)), home.rules[:, 2])
        rules, _ = list_rules(np.where(has, learner.own_scores(whole), np.nan), home, catalogue, options, None)
        return rules, "" if rules else NONE_OWN
    model = {name: a for name, a in trained.items() if name not in STATICS}
    statics = {name: a for name, a in trained.items() if name in STATICS}
    logits = learner.scores(tensors(model), statics, whole)
    return list_rules(logits, home, catalogue, options, statics.get(COUNTS))
