"""Whether what a planned round gains can be known: checked before anybody is asked to pay for it."""

from collections.abc import Collection

from common.config.run import RunConfig
from common.errors import RunError
from common.tasks.registry import TASKS
from server.roster import EnrolledClient

SHARE = (
    'under noise metrics leave a client only where its policy says share-metrics = "always": let some owners say so, '
    "or take what needs none: algorithm.bgtplanner.reward=norm, method uniform, stop=never"
)
"""What to do about it."""


def check_judged(config: RunConfig, clients: Collection[EnrolledClient]) -> None:
    """Accept a round whose gain somebody will tell.

    Args:
        config: The run.
        clients: Those that enrolled and can train.

    Raises:
        RunError: None of them shares its metrics, and the planner goes by them.
    """
    if not config.planner.by_rewards or any(client.shares_metrics for client in clients):
        return
    metric = TASKS[config.task].objective.metric
    raise RunError(
        f"{config.method} goes by '{metric}', which none of the {len(clients)} enrolled clients shares; "
        f"nobody was asked to spend anything. {SHARE[0].upper()}{SHARE[1:]}"
    )
