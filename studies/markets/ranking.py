"""Ranking of PF-GNN+ by Z̃ beside that by Z, measured on the same trainings."""

from contextlib import AbstractContextManager
from unittest.mock import patch

import torch

from client.tasks.markets.learner import MarketsLearner
from common.arrays import Arrays
from common.methods.pfgnn import PFGNN
from common.tasks.markets.metrics import ranking_metrics
from common.tasks.markets.model import assignments, summarize, unpool
from studies.harness.bench import FinishedRun
from studies.harness.row import Metrics, Trial
from studies.markets.retail import MAIN, UNPOOLED


class UnpooledRanking:
    """Evaluation of PF-GNN+ that also ranks by Z̃ = P⁻¹(ξ), as Eq 15's decoder reads it, instead of Z.

    Args:
        found: Market -> metrics of its last evaluation.
    """

    def __init__(self) -> None:
        self.found: dict[str, Metrics] = {}

    def patch(self) -> AbstractContextManager[object]:
        """Return a context in which learners evaluate both rankings."""
        evaluate = MarketsLearner.evaluate

        def both(learner: MarketsLearner, model: Arrays, statics: Arrays, split: str) -> tuple[Metrics, Metrics]:
            if "kappa" in model:
                self._measure(learner, model, split)
            return evaluate(learner, model, statics, split)

        return patch.object(MarketsLearner, "evaluate", both)

    def _measure(self, learner: MarketsLearner, model: Arrays, split: str) -> None:
        """Rank by the projection of Z on the clusters; it is the same for sums and means."""
        (market,) = learner.markets
        z = learner.triple_source.propagated @ torch.from_numpy(model["phi.mean"])
        c = assignments(z, torch.from_numpy(model["kappa"]), PFGNN().tau)
        unpooled = unpool(c, summarize(c, z, "sum"), "sum").embeddings.numpy()
        found, _ = ranking_metrics(
            lambda queries: unpooled[queries] @ unpooled.T, market.split.right(split), market.masked(split)
        )
        self.found[market.split.market.name] = {f"{UNPOOLED}{metric}": found[metric] for metric in MAIN}

    def trial_of(self, run: FinishedRun) -> Trial:
        """Return the main metrics of each market after the last round; the curve while tuning."""
        names = {f"client-{k}": market.name for k, market in enumerate(run.dataset.units)}
        clients = {
            names[client]: {metric: measured.metrics[metric] for metric in MAIN} | self.found.pop(names[client], {})
            for client, measured in run.result.clients.items()
        }
        return Trial(curve=run.curve() if run.tunes else {}, clients=clients)
