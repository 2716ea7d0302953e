"""Client task of the traffic task."""

from client.data.dataset import Source
from client.tasks.registry import ClientTask
from client.tasks.traffic.data.series import SCHEMA, SUFFIXES, Sensors, is_published, write_series
from common.registry import imported
from common.tasks.traffic.task import TASK as SPEC
from common.tasks.traffic.vocabulary import SensorVariables


def read(source: Source, variables: SensorVariables | None, seed: int) -> Sensors:
    """Read a source in any of its forms."""
    from client.tasks.traffic.data.reader import read_series

    return read_series(source.text, variables, dialect=source.dialect)


TASK = ClientTask(
    spec=SPEC,
    unit=("sensor", "sensors"),
    schema=SCHEMA,
    table="sensors.csv",
    demo_units=24,
    read=read,
    write=write_series,
    learner=imported("client.tasks.traffic.learner:TrafficLearner"),
    published=is_published,
    generate=imported("client.tasks.traffic.data.generator:demo_series"),
    variants={
        "breaking": imported("client.tasks.traffic.data.generator:breaking_series"),
        "streets": imported("client.tasks.traffic.data.generator:street_series"),
    },
    suffixes=SUFFIXES,
    summarize=imported("client.tasks.traffic.data.reader:summarize"),
)
