"""Client task of the rules task."""

from pathlib import Path

from client.data.schemes import most_frequent
from client.tasks.registry import ClientTask, reading
from client.tasks.rules.data.homes import SCHEMA, write_homes
from common.registry import imported
from common.tasks.rules.task import TASK as SPEC


def published(folder: Path) -> bool:
    """Return True if the folder is a public set in its published form."""
    from client.tasks.rules.data.home_assistant.reader import is_home_assistant
    from client.tasks.rules.data.reader import is_recrules

    return is_recrules(folder) or is_home_assistant(folder)


TASK = ClientTask(
    spec=SPEC,
    unit=("home", "homes"),
    schema=SCHEMA,
    table="homes.csv",
    demo_units=2000,
    read=reading("client.tasks.rules.data.reader:read_homes"),
    write=write_homes,
    learner=imported("client.tasks.rules.learner:RulesLearner"),
    generate=imported("client.tasks.rules.data.generator:demo_homes"),
    published=published,
    label=lambda home: most_frequent(home.rules[:, 2]),
    summarize=imported("client.tasks.rules.data.reader:summarize"),
)
