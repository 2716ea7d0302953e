"""Rules task: IF-THEN rule recommendation as link prediction on each home's graph (algorithms.md §1)."""

from dataclasses import replace
from typing import TYPE_CHECKING

from common.metrics import HIT_RATE, LOSS, error, share
from common.tasks.closed_form import ClosedForm, limit_masked
from common.tasks.options import VARIANTS
from common.tasks.rules import ease
from common.tasks.rules.metrics import SHOWN_TOPS, TOPS
from common.tasks.rules.options import RulesOptions
from common.tasks.rules.vocabulary import RuleCatalogue, demo_catalogue
from common.tasks.spec import Comparison, Objective, TaskRun, TaskSpec

if TYPE_CHECKING:
    from torch import nn


MOST_RELATIONS = 1000.0
"""Largest mean rank in secure sums of metrics."""


def build_model(run: TaskRun[RulesOptions, RuleCatalogue]) -> "nn.Module":
    """Return the rule recommender."""
    sizes = len(run.vocabulary.entities), len(run.vocabulary.relations)
    if run.model not in VARIANTS:
        from common.tasks.package_networks import RulesNetwork

        return RulesNetwork(run.model, *sizes, noised=run.privacy.unit != "none")
    from common.tasks.rules.model import RuleRecommender

    return RuleRecommender(*sizes, run.options, paper=run.model == "paper", on_top=run.on_top)


TASK = TaskSpec(
    name="rules",
    summary="Recommend IF-THEN rules for smart homes",
    options=RulesOptions,
    vocabulary=RuleCatalogue,
    demo=demo_catalogue,
    build_model=build_model,
    metrics=(
        LOSS,
        share("auc", "auc", "AUC", "Probability that a true rule scores above a false one; 0.5 is random."),
        error(
            "mr0",
            "mr",
            "Mean rank",
            "Mean number of wrong relations that score above the right one; 0 is best.",
            2,
            summed_to=MOST_RELATIONS,
        ),
        error(
            "mr1",
            "mr(1)",
            "Mean rank, from 1",
            "Mean position of the right relation; 1 is best.",
            2,
            headline=False,
            low=1,
            summed_to=MOST_RELATIONS,
        ),
        error(
            "mr_rt",
            "mr(rt)",
            "Mean rank, new only",
            "Mean rank without relations that the pair has in training.",
            2,
            headline=False,
            summed_to=MOST_RELATIONS,
        ),
        replace(HIT_RATE, cuts=TOPS),
        *(
            share(
                f"hr{top}_shown",
                f"hr@{top} shown",
                f"Hit rate @{top} of the shown list",
                f"Share of the held-out rules among the first {top} that are shown: possible ones without contradictions.",
                headline=top == SHOWN_TOPS[-1],
            )
            for top in SHOWN_TOPS
        ),
        share(
            "hr20_frequency",
            "hr@20(frequency)",
            "Hit rate @20 of relation frequency",
            "Baseline: relations in the order of their number in the home's own training rules.",
            headline=False,
            baseline=True,
        ),
        share(
            "hr20_shown_frequency",
            "hr@20 shown(frequency)",
            "Hit rate @20 of the list shown by relation frequency",
            "Baseline: possible rules without contradictions, by the number of their relation in the home's rules.",
            headline=False,
            baseline=True,
        ),
        *(
            share(
                f"{key}_popularity",
                f"{short}(popularity)",
                f"{label} by popularity in the federation",
                "Baseline: rules in the order of the sums of their device types and relation over all homes.",
                headline=False,
                short_table=False,
                baseline=True,
            )
            for key, short, label in (
                ("hr20", "hr@20", "Hit rate @20"),
                ("hr20_shown", "hr@20 shown", "Hit rate @20 of the list shown"),
            )
        ),
    ),
    objective=Objective("hr20_shown"),
    head=("predictor.",),
    record_dp=frozenset({"default", "paper"}),
    closed_form=ClosedForm(
        sums=3,
        noised_sums=1,
        start=lambda run: ease.sizes(run.vocabulary, run.privacy.unit != "none"),
        template=ease.template,
        solve=ease.solve,
        limit_masked=limit_masked(ease.SIZES, ease.MOST_TRIPLES),
        lasting=ease.LASTING,
        noised_sign="positive",
        effort=ease.effort,
        entries=ease.ENTRIES,
        on_top=("default", "paper"),
    ),
    defaults={"method": "ridge"},  # docs/results/rules.md
    network={"method": "fedrule"},
    paper={"method": "fedrule", "rounds": 100, "training.lr": 0.003, "tasks.rules.negatives": 1},
    planner_validation_share=0.3,  # a home has few rules
    simple={"hr20": "hr20_frequency", "hr20_shown": "hr20_shown_frequency"},
    takes_networks=True,
    comparison=Comparison(
        "homes",
        "relation frequency",
        {"popularity": {"hr20": "hr20_popularity", "hr20_shown": "hr20_shown_popularity"}},
        frozenset({"popularity"}),
    ),
)
