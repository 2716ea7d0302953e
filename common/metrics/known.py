"""The metrics there are: a row each."""

from common.metrics.spec import MetricSpec

COMMON_METRICS = (
    MetricSpec(
        "loss", "loss", "Loss", "lower", 3, "How surprised the model is by held-out truth; 0 is certain and right."
    ),
    MetricSpec(
        "auc", "auc", "AUC", "higher", 3, "Chance that a true example scores above a false one; 0.5 is guessing."
    ),
    MetricSpec(
        "mr0",
        "mr",
        "Mean rank",
        "lower",
        2,
        "Wrong relations that score above the right one, on average; 0 is perfect.",
    ),
    MetricSpec("mr1", "mr(1)", "Mean rank, from 1", "lower", 2, "Position of the right relation; 1 is perfect.", False),
    MetricSpec(
        "mr_rt",
        "mr(rt)",
        "Mean rank, new only",
        "lower",
        2,
        "Mean rank with relations the pair already has left out.",
        False,
    ),
    MetricSpec("hr*", "hr@*", "Hit rate @*", "higher", 3, "Share of held-out truth among the first * suggestions."),
    MetricSpec("mrr*", "mrr@*", "MRR @*", "higher", 3, "Mean of 1/position of the first right answer, 0 beyond *."),
    MetricSpec(
        "ndcg*",
        "ndcg@*",
        "NDCG @*",
        "higher",
        3,
        "Right answers among the first *, worth less further down; 1 is perfect.",
    ),
    MetricSpec("recall*", "recall@*", "Recall @*", "higher", 3, "Share of all right answers that the first * hold."),
    MetricSpec(
        "mse",
        "mse",
        "Mean squared error",
        "lower",
        4,
        "Squared distance of forecast and truth, on average, each sensor in standard deviations of its own past.",
    ),
    MetricSpec(
        "profile_mse",
        "profile mse",
        "Mean squared error of the profile",
        "lower",
        4,
        "The line to beat: what the sensor usually reads at that time of the week.",
        False,
    ),
    MetricSpec(
        "ridge_mse",
        "ridge mse",
        "Mean squared error of its own ridge line",
        "lower",
        4,
        "The profile and the sensor's own ridge regression on it, halved with everybody's where sums are shared.",
        False,
    ),
    MetricSpec(
        "last_week_mse",
        "last week mse",
        "Mean squared error of last week",
        "lower",
        4,
        "Repeating the same hours of the week before.",
        False,
    ),
    MetricSpec(
        "rho_point",
        "ρ.point",
        "Rule satisfaction, points",
        "higher",
        3,
        "Share of forecast readings inside the range that the sensor's property gives them.",
        False,
    ),
    MetricSpec(
        "rho_window",
        "ρ.window",
        "Rule satisfaction, windows",
        "higher",
        3,
        "Share of pairs of forecast readings wholly in range.",
        False,
    ),
    MetricSpec(
        "rho_trace",
        "ρ.trace",
        "Rule satisfaction, traces",
        "higher",
        3,
        "Share of whole forecasts that keep the property; read it beside the truth's own.",
    ),
    MetricSpec(
        "property_width",
        "width",
        "Width of the property",
        "",
        3,
        "Mean room between its bounds, in standard deviations: a wide one is easy to keep and says little.",
        False,
    ),
    MetricSpec("rmse", "rmse", "RMSE", "lower", 4, "Typical error of a predicted rating, as a share of the scale."),
    MetricSpec(
        "rmse_local_mean", "rmse(own mean)", "RMSE of own mean", "lower", 4, "The line to beat: each user's own mean."
    ),
    MetricSpec(
        "rmse_prior_mean",
        "rmse(prior mean)",
        "RMSE of the public prior mean",
        "lower",
        4,
        "Always saying the prior of the options, in place of everybody's mean, which nobody knows.",
        False,
    ),
    MetricSpec(
        "rmse_half", "rmse(half)", "RMSE of one half", "lower", 4, "Always saying the middle of the scale.", False
    ),
    MetricSpec(
        "mae", "mae", "MAE", "lower", 3, "Mean absolute error of a predicted rating, as a share of the scale.", False
    ),
    MetricSpec("f1", "f1", "F1", "higher", 3, "Harmonic mean of precision and recall of 'will like it'."),
    MetricSpec(
        "f1_all_liked", "f1(all)", "F1 of all liked", "higher", 3, "Saying of everything that it will be liked.", False
    ),
)
EXAMPLES = MetricSpec("examples", "examples", "Examples", "", 0, "How much each client brings.")
"""No metric, but spread over the clients like one."""
