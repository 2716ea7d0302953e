"""Client task of the traffic task."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from client.data.sources import Source
from client.tasks.spec import ClientTask
from client.tasks.traffic.data.generator import demo_series
from client.tasks.traffic.data.published_folder import is_published
from client.tasks.traffic.data.series import Sensors
from client.tasks.traffic.data.site_faults import breaking_series
from client.tasks.traffic.data.writer import write_series
from client.tasks.traffic.schema import SCHEMA, SUFFIXES
from common.tasks.spec import TaskRun
from common.tasks.traffic.options import TrafficOptions
from common.tasks.traffic.task import TASK as SPEC
from common.tasks.traffic.vocabulary import SensorVariables

if TYPE_CHECKING:
    from client.data.summary import DataSummary
    from client.data.tables.table import Table
    from client.tasks.traffic.learner import TrafficLearner


def read(source: Source, variables: SensorVariables | None, seed: int) -> Sensors:
    """Read a source in any of its forms."""
    from client.tasks.traffic.data.reader import read_series

    return read_series(source.text, variables, dialect=source.dialect)


def learner(run: TaskRun[TrafficOptions, SensorVariables], dataset: Sensors) -> "TrafficLearner":
    """Build the learner of a run from a client's data."""
    from client.tasks.traffic.learner import TrafficLearner

    return TrafficLearner(run, dataset)


def summarize(options: TrafficOptions, dataset: Sensors, tables: Sequence["Table"]) -> "DataSummary":
    """Summarize a data set for its owner."""
    from client.tasks.traffic.data import summary

    return summary.summarize(options, dataset, tables)


TASK = ClientTask(
    spec=SPEC,
    unit=("sensor", "sensors"),
    schema=SCHEMA,
    table="sensors.csv",
    demo_units=24,
    read=read,
    write=write_series,
    learner=learner,
    published=is_published,
    generate=demo_series,
    variants={"breaking": breaking_series},
    suffixes=SUFFIXES,
    summarize=summarize,
)
