"""Precondition of a planned round: its reward can be computed; checked before any client is charged."""

from collections.abc import Collection

from common.config.run import RunConfig
from common.errors import RunError
from common.tasks.registry import TASKS
from common.text import count
from server.roster import EnrolledClient

METRICS_REMEDY = (
    'set share-metrics = "always" in some policies, or use a planner without metrics'
    " (algorithm.bgtplanner.reward=norm, method uniform, stop=never)"
)
"""Remedy for missing rewards; under noise, clients send metrics only if their policy opts in."""


def check_metrics_shared(config: RunConfig, clients: Collection[EnrolledClient]) -> None:
    """Check that a client shares the metric of the planner's reward.

    Args:
        config: Configuration of the run.
        clients: Enrolled clients that can train.

    Raises:
        RunError: The planner needs metrics, and no client shares them.
    """
    sharing = sum(client.shares_metrics for client in clients)
    is_summed = config.privacy.unit == "none" and config.privacy.resolved_trust == "helpers"
    if not config.planner.by_rewards or sharing >= (config.secure_sums.min_sum if is_summed else 1):
        return
    if sharing:
        raise RunError(
            f"{config.method} needs metrics, which {count(sharing, 'client')} share;"
            f" a secure sum has at least {config.secure_sums.min_sum} (no budget was charged)"
        )
    metric = TASKS[config.task].objective.metric
    raise RunError(
        f"{config.method} needs the metric '{metric}', which none of the {len(clients)} enrolled clients shares"
        f" (no budget was charged); {METRICS_REMEDY}"
    )
