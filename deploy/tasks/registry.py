"""Registry of tasks at the command line and in reports.

A task without an entry trains and has a report, but answers no queries.
"""

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
