"""Metrics of several tasks."""

from common.metrics.spec import MetricFamily, MetricSpec

LOSS = MetricSpec(
    "loss", "loss", "Loss", "lower", 3, "Mean loss of the predictions on held-out data; 0 is certain and right.", low=0
)
HIT_RATE = MetricSpec(
    "hr*",
    "hr@*",
    "Hit rate @*",
    "higher",
    3,
    "Share of the held-out answers among the first * suggestions.",
    low=0,
    high=1,
)
MRR = MetricSpec(
    "mrr*", "mrr@*", "MRR @*", "higher", 3, "Mean of 1/position of the first right answer; 0 beyond *.", low=0, high=1
)
NDCG = MetricSpec(
    "ndcg*",
    "ndcg@*",
    "NDCG @*",
    "higher",
    3,
    "Right answers among the first *, discounted by position; 1 is perfect.",
    low=0,
    high=1,
)

EXAMPLES = MetricSpec("examples", "examples", "Examples", "", 0, "Number of training records of each client.")
"""Number of records; not a metric, but reported per client like one."""

MODEL_FAMILIES = (MetricFamily("cluster_", "cluster model"), MetricFamily("global_", "shared model"))
"""Metrics of the shared model of a client that also has a personalized model."""
