"""Client task of the ratings task."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from client.data.sources import Source
from client.tasks.ratings.data.generator import demo_raters
from client.tasks.ratings.data.published_folder import is_published
from client.tasks.ratings.data.raters import Ratings
from client.tasks.ratings.data.writer import write_raters
from client.tasks.ratings.schema import SCHEMA
from client.tasks.spec import ClientTask
from common.tasks.ratings.options import RatingsOptions
from common.tasks.ratings.task import TASK as SPEC
from common.tasks.ratings.vocabulary import ProductCatalogue
from common.tasks.spec import TaskRun

if TYPE_CHECKING:
    from client.data.summary import DataSummary
    from client.data.tables.table import Table
    from client.tasks.ratings.learner import RatingsLearner


def read(source: Source, products: ProductCatalogue | None, seed: int) -> Ratings:
    """Read a source in any of its forms."""
    from client.tasks.ratings.data.reader import read_raters

    return read_raters(source.text, products, dialect=source.dialect)


def learner(run: TaskRun[RatingsOptions, ProductCatalogue], dataset: Ratings) -> "RatingsLearner":
    """Build the learner of a run from a client's data."""
    from client.tasks.ratings.learner import RatingsLearner

    return RatingsLearner(run, dataset)


def summarize(options: RatingsOptions, dataset: Ratings, tables: Sequence["Table"]) -> "DataSummary":
    """Summarize a data set for its owner."""
    from client.tasks.ratings.data import summary

    return summary.summarize(options, dataset, tables)


TASK = ClientTask(
    spec=SPEC,
    unit=("rater", "raters"),
    schema=SCHEMA,
    table="ratings.csv",
    demo_units=200,
    read=read,
    write=write_raters,
    learner=learner,
    published=is_published,
    takes_splits=True,
    generate=demo_raters,
    summarize=summarize,
)
