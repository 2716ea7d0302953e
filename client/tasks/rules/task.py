"""Client task of the rules task."""

from pathlib import Path

from client.data.dataset import Source
from client.data.schemes import most_frequent
from client.tasks.registry import ClientTask
from client.tasks.rules.data.homes import SCHEMA, Homes, write_homes
from common.registry import imported
from common.tasks.rules.task import TASK as SPEC
from common.tasks.rules.vocabulary import RuleCatalogue


def read(source: Source, catalogue: RuleCatalogue | None, seed: int) -> Homes:
    """Read a source in any of its forms."""
    from client.tasks.rules.data.reader import read_homes

    return read_homes(source.text, catalogue, dialect=source.dialect)


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
    read=read,
    write=write_homes,
    learner=imported("client.tasks.rules.learner:RulesLearner"),
    generate=imported("client.tasks.rules.data.generator:demo_homes"),
    published=published,
    label=lambda home: most_frequent(home.rules[:, 2]),
    summarize=imported("client.tasks.rules.data.reader:summarize"),
)
