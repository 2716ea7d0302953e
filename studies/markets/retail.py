"""Rows of Online Retail: the paper's networks, and the default model with and without texts."""

from dataclasses import replace

from studies.harness.experiment import HELPED_EPSILONS, Experiment, Settings, method_options, with_helpers
from studies.markets.experiments import BETA, PREFIX, RIDGE, STEPS, shared_settings

RETAIL = "online-retail"
"""Short name of the data set."""

MARKETS = ("uk", "de", "fr", "ie", "be", "es", "nl", "pt", "ch", "it", "au")
"""From the largest to the smallest."""

PROTOCOLS = {
    "cold": "Items cold in this market: 10 % of the items lose all their pairs and are the only queries",
    "pairs": "Random pairs: 10 % of the undirected pairs (at least two invoices) are held out",
}

MAIN = ("mrr20", "ndcg20")

UNPOOLED = "unpooled_"
"""Prefix of metrics of a ranking by Z̃ = P⁻¹(ξ) instead of Z; rows of PF-GNN+ have both."""

SEEDS = 5

RATES = (0.08, 0.32)
"""Adam's rates over which the networks are tuned."""

WEIGHTS_W = (0.1, 1.0, 10.0, 100.0, 1000.0)
"""λ_w of the paper's grid."""

WEIGHTS_S = (0.001, 0.01, 0.1, 1.0, 10.0)
"""λ_s of the paper's grid, at λ_w = 1."""

CENTROID: Settings = {**BETA, "summary": "centroid", "lambda-s": 0.001}


def _row(
    key: str, title: str, method: str, options: Settings | None = None, task: Settings | None = None, tuned_as: str = ""
) -> Experiment:
    """Return a row of the paper's networks."""
    settings = {
        **shared_settings(method, "paper", task),
        **method_options(method, {"optimizer": "adam", "local-steps": STEPS, **(options or {})}),
    }
    grid = tuple(method_options(method, {"lr": rate}) for rate in RATES)
    return Experiment(key, title, settings, grid, SEEDS, "pairs", tuned_as)


EXPERIMENTS = (
    RIDGE,
    *(with_helpers(RIDGE, epsilon) for epsilon in HELPED_EPSILONS),
    _row("local", "local GNN (SGC + BPR)", "local"),
    _row("fedavg", "F-GNN (FedAvg of W)", "fedavg"),
    _row("pfgnn", "PF-GNN (Eq 13)", "pfgnn", {**BETA, "plus": False}),
    _row("pfgnn-plus", "**PF-GNN+** (Eq 15–16), ξ a sum as in the paper", "pfgnn", BETA, tuned_as="pfgnn"),
    _row("pfgnn-centroid", "**PF-GNN+**, ξ the clusters' means", "pfgnn", CENTROID, tuned_as="pfgnn"),
)

EFFORT, EFFORT_STEPS = "-200", 200
"""Ending of the keys of rows with the paper's local effort, and its steps a round, near 20 epochs."""


def _with_effort(one: Experiment) -> Experiment:
    """Return a row with the paper's local effort, without divergence, at the rate that all rows chose."""
    method = str(one.settings["method"])
    options: Settings = {"local-steps": EFFORT_STEPS, "lr": RATES[0]}
    title = f"{one.title}; {EFFORT_STEPS} local steps"
    if method == "pfgnn":
        options, title = {**options, "divergence": 0.0}, f"{title}, no divergence"
    settings = {**one.settings, **method_options(method, options)}
    return replace(one, key=f"{one.key}{EFFORT}", title=title, settings=settings, grid=({},), tuned_as="")


EFFORTS = tuple(_with_effort(one) for one in EXPERIMENTS if one.key in ("fedavg", "pfgnn", "pfgnn-plus"))
"""Rows with the paper's local effort, on random pairs."""

BASELINES = {
    "degree": "*baseline:* degree (popularity)",
    "shared": "*baseline:* degree and others' counts",
    "text": "*baseline:* nearest texts",
    "walk": "*baseline:* wRA, count-weighted walk of two hops",
    f"{PREFIX}walk": "*baseline:* wRA, count-weighted walk of two hops, pooled counts",
}
"""Baselines without training: key -> title."""

TITLES = {**BASELINES, **{one.key: one.title for one in (*EXPERIMENTS, *EFFORTS)}}
"""All rows in the order of the tables: key -> title."""


def _grid(key: str, plus: bool, points: list[tuple[float, float]]) -> Experiment:
    settings = {
        **shared_settings("pfgnn", "paper", None),
        **method_options("pfgnn", {**BETA, "plus": plus, "lr": 0.08}),
    }
    return Experiment(
        key,
        TITLES[key],
        settings,
        tuple(method_options("pfgnn", {"lambda-w": w, "lambda-s": s}) for w, s in points),
        seeds=0,
        protocol="lambda",
    )


GRIDS = (
    _grid("pfgnn", plus=False, points=[(w, 0.01) for w in WEIGHTS_W]),
    _grid(
        "pfgnn-plus",
        plus=True,
        points=[*((w, 0.01) for w in WEIGHTS_W), *((1.0, s) for s in WEIGHTS_S if s != 0.01)],
    ),
)
"""Points of λ_w and λ_s, compared on held-out training pairs; protocol `lambda`."""
