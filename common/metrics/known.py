"""The metrics there are: a row each."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Measure:
    """One metric.

    Args:
        key: As in metrics.jsonl and result.json.
        short: For a line in a log.
        label: For a heading.
        better: Which way is better; empty where nobody can say.
        digits: Digits after the point.
        meaning: One plain sentence.
        headline: Whether it belongs in a line or gets a curve, or only stands in tables.
    """

    key: str
    short: str
    label: str
    better: Literal["lower", "higher", ""]
    digits: int
    meaning: str
    headline: bool = True


KNOWN = (
    Measure(
        "loss", "loss", "Loss", "lower", 3, "How surprised the model is by held-out truth; 0 is certain and right."
    ),
    Measure("auc", "auc", "AUC", "higher", 3, "Chance that a true example scores above a false one; 0.5 is guessing."),
    Measure(
        "mr0",
        "mr",
        "Mean rank",
        "lower",
        2,
        "Wrong relations that score above the right one, on average; 0 is perfect.",
    ),
    Measure("mr1", "mr(1)", "Mean rank, from 1", "lower", 2, "Position of the right relation; 1 is perfect.", False),
    Measure(
        "mr_rt",
        "mr(rt)",
        "Mean rank, new only",
        "lower",
        2,
        "Mean rank with relations the pair already has left out.",
        False,
    ),
    Measure("hr*", "hr@*", "Hit rate @*", "higher", 3, "Share of held-out truth among the first * suggestions."),
    Measure("mrr*", "mrr@*", "MRR @*", "higher", 3, "Mean of 1/position of the first right answer, 0 beyond *."),
    Measure(
        "ndcg*",
        "ndcg@*",
        "NDCG @*",
        "higher",
        3,
        "Right answers among the first *, worth less further down; 1 is perfect.",
    ),
    Measure("recall*", "recall@*", "Recall @*", "higher", 3, "Share of all right answers that the first * hold."),
    Measure(
        "mse",
        "mse",
        "Mean squared error",
        "lower",
        4,
        "Squared distance of forecast and truth, on average, each sensor in standard deviations of its own past.",
    ),
    Measure(
        "profile_mse",
        "profile mse",
        "Mean squared error of the profile",
        "lower",
        4,
        "The line to beat: what the sensor usually reads at that time of the week.",
        False,
    ),
    Measure(
        "ridge_mse",
        "ridge mse",
        "Mean squared error of its own ridge line",
        "lower",
        4,
        "The profile and the sensor's own ridge regression on it, halved with everybody's where sums are shared.",
        False,
    ),
    Measure(
        "last_week_mse",
        "last week mse",
        "Mean squared error of last week",
        "lower",
        4,
        "Repeating the same hours of the week before.",
        False,
    ),
    Measure(
        "rho_point",
        "ρ.point",
        "Rule satisfaction, points",
        "higher",
        3,
        "Share of forecast readings inside the range that the sensor's property gives them.",
        False,
    ),
    Measure(
        "rho_window",
        "ρ.window",
        "Rule satisfaction, windows",
        "higher",
        3,
        "Share of pairs of forecast readings wholly in range.",
        False,
    ),
    Measure(
        "rho_trace",
        "ρ.trace",
        "Rule satisfaction, traces",
        "higher",
        3,
        "Share of whole forecasts that keep the property; read it beside the truth's own.",
    ),
    Measure(
        "property_width",
        "width",
        "Width of the property",
        "",
        3,
        "Mean room between its bounds, in standard deviations: a wide one is easy to keep and says little.",
        False,
    ),
    Measure("rmse", "rmse", "RMSE", "lower", 4, "Typical error of a predicted rating, as a share of the scale."),
    Measure(
        "rmse_local_mean", "rmse(own mean)", "RMSE of own mean", "lower", 4, "The line to beat: each user's own mean."
    ),
    Measure(
        "rmse_prior_mean",
        "rmse(prior mean)",
        "RMSE of the public prior mean",
        "lower",
        4,
        "Always saying the prior of the options, in place of everybody's mean, which nobody knows.",
        False,
    ),
    Measure("rmse_half", "rmse(half)", "RMSE of one half", "lower", 4, "Always saying the middle of the scale.", False),
    Measure(
        "mae", "mae", "MAE", "lower", 3, "Mean absolute error of a predicted rating, as a share of the scale.", False
    ),
    Measure("f1", "f1", "F1", "higher", 3, "Harmonic mean of precision and recall of 'will like it'."),
    Measure(
        "f1_all_liked", "f1(all)", "F1 of all liked", "higher", 3, "Saying of everything that it will be liked.", False
    ),
)
EXAMPLES = Measure("examples", "examples", "Examples", "", 0, "How much each client brings.")
"""No metric, but spread over the clients like one."""
