"""Registry of tasks at the command line and in reports.

A task without an entry trains and has a report, but answers no queries.
"""

from collections.abc import Iterator

from common.errors import ConfigError
from common.registry import Registry
from deploy.tasks.spec import DeployTask

DEPLOY_TASKS: Registry[DeployTask] = Registry(
    "task",
    "fedloom.tasks.deploy",
    DeployTask,
    {
        "rules": "deploy.tasks.rules.task:TASK",
        "sessions": "deploy.tasks.sessions.task:TASK",
        "traffic": "deploy.tasks.traffic.task:TASK",
        "ratings": "deploy.tasks.ratings.task:TASK",
        "markets": "deploy.tasks.markets.task:TASK",
    },
)


def usable_tasks() -> Iterator[DeployTask]:
    """Iterate over the tasks that can be imported; `fedloom tasks` shows the error of the others."""
    for name in DEPLOY_TASKS:
        try:
            yield DEPLOY_TASKS[name]
        except ConfigError:
            continue
