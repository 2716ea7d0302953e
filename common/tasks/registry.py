"""Registry of tasks."""

from common.registry import Registry
from common.tasks.closed_form import AnyClosedForm
from common.tasks.spec import AnyTask, TaskSpec
from common.tasks.vocabulary import Vocabulary

TASKS: Registry[AnyTask] = Registry(
    "task",
    "fedloom.tasks",
    TaskSpec,
    {
        "rules": "common.tasks.rules.task:TASK",
        "sessions": "common.tasks.sessions.task:TASK",
        "traffic": "common.tasks.traffic.task:TASK",
        "ratings": "common.tasks.ratings.task:TASK",
        "markets": "common.tasks.markets.task:TASK",
    },
)

FIRST_TASK = "rules"
"""Default task of a run."""


def closed_form_of(task: str) -> AnyClosedForm:
    """Return the closed form of a task, which the configuration has checked to exist."""
    form: AnyClosedForm | None = TASKS[task].closed_form
    assert form is not None  # checked by RunConfig
    return form


def read_vocabulary(task: str, text: str) -> Vocabulary:
    """Read the JSON text of a task's vocabulary.

    Raises:
        DataError: The text is not a vocabulary of that task.
    """
    vocabulary: Vocabulary = TASKS[task].vocabulary.from_json(text)
    return vocabulary


def demo_vocabulary(task: str) -> Vocabulary:
    """Return the vocabulary of a task's embedded data."""
    vocabulary: Vocabulary = TASKS[task].demo()
    return vocabulary
