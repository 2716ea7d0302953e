"""Registry of client tasks."""

from typing import TYPE_CHECKING

from client.data.dataset import AnyDataset
from client.tasks.spec import AnyClientTask, ClientTask
from common.config.run import RunConfig
from common.registry import Registry

if TYPE_CHECKING:
    from client.tasks.learner import Learner

CLIENT_TASKS: Registry[AnyClientTask] = Registry(
    "task",
    "fedloom.tasks.client",
    ClientTask,
    {
        "rules": "client.tasks.rules.task:TASK",
        "sessions": "client.tasks.sessions.task:TASK",
        "traffic": "client.tasks.traffic.task:TASK",
        "ratings": "client.tasks.ratings.task:TASK",
        "markets": "client.tasks.markets.task:TASK",
    },
)


def build_learner(config: RunConfig, dataset: AnyDataset) -> "Learner":
    """Build the learner of a run's task from a client's data."""
    task = CLIENT_TASKS[config.task]
    return task.learner(config.task_run(task.spec, dataset.vocabulary), dataset)
