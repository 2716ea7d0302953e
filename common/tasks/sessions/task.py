"""Sessions task: next item of a session by SR-GNN or TAGNN (algorithms.md §2), and its metrics."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from common.arrays import Ints
from common.metrics import HIT_RATE, LOSS, MRR, NDCG, share
from common.tasks.closed_form import ClosedForm, limit_masked
from common.tasks.options import VARIANTS
from common.tasks.sessions import slist
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.vocabulary import Items, demo_items
from common.tasks.spec import Comparison, Objective, TaskRun, TaskSpec

if TYPE_CHECKING:
    from torch import nn

Floats = NDArray[np.floating[Any]]

TOPS = (10, 20)


def ranks(logits: Floats, targets: Ints) -> Floats:
    """Return the 1-based rank of each case's target among all items, E from E × V.

    Ties get the mean of their ranks. The rank is NaN if a logit of the case is NaN (diverged model).
    """
    target_logits = logits[np.arange(len(targets)), targets][:, None]
    ahead, equal = (logits > target_logits).sum(1), (logits == target_logits).sum(1)
    places: Floats = np.where(np.isnan(logits).any(1), np.nan, ahead + (equal + 1) / 2)
    return places


def session_metrics(places: Floats, losses: Floats) -> dict[str, float]:
    """Return means over E cases of HR@N, MRR@N (0 beyond N), NDCG@20 and the loss; {} without cases.

    A NaN rank makes every ranking metric NaN.

    Args:
        places: Rank of each target, E.
        losses: −log probability of each target, E.
    """
    if not len(places):
        return {}
    metrics = {f"hr{top}": _mean_within(places, top, np.ones_like(places)) for top in TOPS}
    metrics |= {f"mrr{top}": _mean_within(places, top, 1 / places) for top in TOPS}
    metrics["ndcg20"] = _mean_within(places, 20, 1 / np.log2(places + 1))
    metrics["loss"] = float(np.mean(losses))
    return metrics


def _mean_within(places: Floats, top: int, values: Floats) -> float:
    """Return the mean of `values`, with 0 for ranks beyond `top`."""
    return float(np.mean(np.where(places > top, 0, np.where(np.isnan(places), np.nan, values))))


def build_model(run: TaskRun[SessionsOptions, Items]) -> "nn.Module":
    """Return the session network; by default blended with features of the visitor's history."""
    if run.model not in VARIANTS:
        from common.tasks.package_networks import SessionsNetwork

        return SessionsNetwork(run.model, len(run.vocabulary.items), noised=run.privacy.unit != "none")
    from common.tasks.sessions.model import LocalBlend, build_session_model

    network = build_session_model(len(run.vocabulary.items), run.options)
    return network if run.model == "paper" else LocalBlend(network, on_top=run.on_top)


TASK = TaskSpec(
    name="sessions",
    summary="Recommend the next item of a session",
    options=SessionsOptions,
    vocabulary=Items,
    demo=demo_items,
    build_model=build_model,
    metrics=(
        replace(LOSS, summed_to=20.0),  # log of the number of items
        replace(HIT_RATE, cuts=TOPS),
        replace(MRR, cuts=TOPS),
        replace(NDCG, cuts=(20,)),
        share(
            "hr20_history",
            "hr@20(history)",
            "Hit rate @20 of own history",
            "Baseline: items by the visitor's own visits, visits after the last item, and clicks of the session; the clicks of"
            " the session come first if that ranks the visitor's training sessions better.",
            headline=False,
            baseline=True,
        ),
        share(
            "hr20_recency",
            "hr@20(recency)",
            "Hit rate @20 of recency",
            "Baseline: items of the session, the last click first.",
            headline=False,
            baseline=True,
        ),
    ),
    objective=Objective("hr20"),
    head=("scale", "weight"),  # weights of the blend
    record_dp=frozenset({"paper"}),
    closed_form=ClosedForm(
        sums=4,
        noised_sums=2,
        start=lambda run: slist.sizes(run.vocabulary, run.privacy.unit != "none"),
        template=slist.template,
        solve=slist.solve,
        limit_masked=limit_masked(slist.SIZES, slist.MOST_MASKED_ITEMS),
        lasting=slist.LASTING,
        noised_sign="positive",
        effort=slist.effort,
        entries=slist.ENTRIES,
    ),
    defaults={"method": "ridge"},  # docs/results/sessions.md
    network={"method": "fedga"},
    paper={
        "method": "fedga",
        "rounds": 100,
        "training.weighting": "examples",
        "algorithm.fedga.server-lr": 0.02,
        "tasks.sessions.loss": "full",
    },
    simple={"hr20": "hr20_history"},
    takes_networks=True,
    comparison=Comparison("visitors", "own history", {"recency": {"hr20": "hr20_recency"}}),
)
