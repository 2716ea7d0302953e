"""Metrics of several tasks."""

from common.metrics.spec import MetricFamily, MetricSpec, error, share

LOSS = error("loss", "loss", "Loss", "Mean loss of the predictions on held-out data; 0 is certain and right.", 3)
HIT_RATE = share("hr*", "hr@*", "Hit rate @*", "Share of the held-out answers among the first * suggestions.")
MRR = share("mrr*", "mrr@*", "MRR @*", "Mean of 1/position of the first right answer; 0 beyond *.")
NDCG = share("ndcg*", "ndcg@*", "NDCG @*", "Right answers among the first *, discounted by position; 1 is perfect.")

EXAMPLES = MetricSpec("examples", "examples", "Examples", "", 0, "Number of training records of each client.")
"""Number of records; not a metric, but reported per client like one."""

MODEL_FAMILIES = (MetricFamily("cluster_", "cluster model"), MetricFamily("global_", "shared model"))
"""Metrics of the shared model of a client that also has a personalized model."""

USED = MetricFamily("used_", "as clients use it")
"""Metric of what clients use in runs with noise: each its model, or the baseline that sends nothing."""
