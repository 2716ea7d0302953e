"""Registry of tasks at the command line and in reports.

A task without an entry trains and has a report, but answers no queries.
"""

from collections.abc import Iterable, Mapping

from common.registry import Registry, expect, naming_packages
from deploy.tasks.spec import Answers, DeployTask, TrainedRun

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


def ask(task: DeployTask, run: TrainedRun, queries: Iterable[Mapping[str, str]], top: int) -> list[Answers]:
    """Return a task's answers to queries.

    Args:
        task: A task that answers queries.
        run: Finished run.
        queries: Values of the options by name, of each query.
        top: Number of answers to a query.

    Raises:
        PackageError: The task's package fails, or answers something else.
    """
    # `find_answering` and the live page choose tasks that answer.
    assert task.answer is not None
    with naming_packages(DEPLOY_TASKS.packages(task.name)):
        return [expect(task.answer(run, query, top), Answers) for query in queries]
