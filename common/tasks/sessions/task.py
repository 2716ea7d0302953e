"""Sessions task: next item of a session by SR-GNN or TAGNN (algorithms.md §2)."""

from dataclasses import replace
from typing import TYPE_CHECKING

from common.metrics.known import HIT_RATE, LOSS, MODEL_FAMILIES, MRR, NDCG
from common.metrics.spec import share
from common.tasks.comparison import Comparison
from common.tasks.count_statistics import pair_statistics
from common.tasks.sessions.counts import add_rules, check_rules, dense_rules, to_dense, to_sparse
from common.tasks.sessions.demo import demo_items
from common.tasks.sessions.metrics import TOPS
from common.tasks.sessions.options import SessionsOptions
from common.tasks.sessions.vocabulary import Items
from common.tasks.spec import Objective, TaskRun, TaskSpec

if TYPE_CHECKING:
    from torch import nn


def build_model(run: TaskRun[SessionsOptions, Items]) -> "nn.Module":
    """Return the session network; by default blended with features of the visitor's history."""
    from common.tasks.sessions.history_blend import LocalBlend
    from common.tasks.sessions.model import build_session_model

    network = build_session_model(len(run.vocabulary.items), run.options)
    return network if run.model == "paper" else LocalBlend(network)


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
            "Baseline: items by the visitor's own visits, visits after the last item, and clicks of the session.",
            headline=False,
            baseline=True,
        ),
    ),
    families=MODEL_FAMILIES,
    objective=Objective("loss"),
    head=("scale", "weight"),  # weights of the blend
    record_dp=frozenset({"paper"}),
    counts=replace(
        pair_statistics(check_rules, add_rules, dense_rules, to_sparse, to_dense),
        used=lambda _, model: model == "default",
    ),
    defaults={"method": "fedga"},
    simple={"hr20": "hr20_history"},
    comparison=Comparison("hr20", "visitors", "own history", higher_is_better=True, answers=True),
)
