"""Metrics of several tasks."""

from common.metrics.spec import MetricFamily, MetricSpec

LOSS = MetricSpec(
    "loss", "loss", "Loss", "lower", 3, "How surprised the model is by held-out truth; 0 is certain and right."
)
HIT_RATE = MetricSpec(
    "hr*", "hr@*", "Hit rate @*", "higher", 3, "Share of held-out truth among the first * suggestions."
)
MRR = MetricSpec("mrr*", "mrr@*", "MRR @*", "higher", 3, "Mean of 1/position of the first right answer, 0 beyond *.")
NDCG = MetricSpec(
    "ndcg*",
    "ndcg@*",
    "NDCG @*",
    "higher",
    3,
    "Right answers among the first *, worth less further down; 1 is perfect.",
)

EXAMPLES = MetricSpec("examples", "examples", "Examples", "", 0, "How much each client brings.")
"""Number of records; no metric, but spread over the clients like one."""

MODEL_FAMILIES = (MetricFamily("cluster_", "cluster model"), MetricFamily("global_", "shared model"))
"""Metrics of a model that a client shares, where it also has a personalized one."""
