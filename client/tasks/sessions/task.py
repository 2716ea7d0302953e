"""Client task of the sessions task."""

from client.data.dataset import Source
from client.data.schemes import most_frequent
from client.tasks.registry import ClientTask
from client.tasks.sessions.data.visitors import SCHEMA, Visits, write_visitors
from common.registry import imported
from common.tasks.sessions.task import TASK as SPEC
from common.tasks.sessions.vocabulary import Items


def read(source: Source, items: Items | None, seed: int) -> Visits:
    """Read a source in any of its forms."""
    from client.tasks.sessions.data.reader import read_visitors

    return read_visitors(source.path, items, test=source.test, dialect=source.dialect)


TASK = ClientTask(
    spec=SPEC,
    unit=("visitor", "visitors"),
    schema=SCHEMA,
    table="sessions.csv",
    demo_units=400,
    read=read,
    write=write_visitors,
    learner=imported("client.tasks.sessions.learner:SessionsLearner"),
    generate=imported("client.tasks.sessions.data.generator:demo_visitors"),
    published=imported("client.tasks.sessions.data.reader:is_published"),
    test_file=True,
    label=lambda visitor: most_frequent(*visitor.sessions, *(case.prefix for case in visitor.test)),
    takes_splits=True,
    summarize=imported("client.tasks.sessions.data.reader:summarize"),
)
