"""Client task of the ratings task."""

from client.data.dataset import Source
from client.tasks.ratings.data.raters import SCHEMA, Ratings, is_published, write_raters
from client.tasks.registry import ClientTask
from common.registry import imported
from common.tasks.ratings.task import TASK as SPEC
from common.tasks.ratings.vocabulary import ProductCatalogue


def read(source: Source, products: ProductCatalogue | None, seed: int) -> Ratings:
    """Read a source in any of its forms."""
    from client.tasks.ratings.data.reader import read_raters

    return read_raters(source.text, products, dialect=source.dialect)


TASK = ClientTask(
    spec=SPEC,
    unit=("rater", "raters"),
    schema=SCHEMA,
    table="ratings.csv",
    demo_units=200,
    read=read,
    write=write_raters,
    learner=imported("client.tasks.ratings.learner:RatingsLearner"),
    published=is_published,
    takes_splits=True,
    label=lambda rater: float(rater.ratings.mean()) if len(rater.ratings) else 0.0,
    generate=imported("client.tasks.ratings.data.generator:demo_raters"),
    summarize=imported("client.tasks.ratings.data.reader:summarize"),
)
