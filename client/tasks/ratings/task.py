"""Client task of the ratings task."""

from client.tasks.ratings.data.raters import SCHEMA, is_published, write_raters
from client.tasks.registry import ClientTask, reading
from common.registry import imported
from common.tasks.ratings.task import TASK as SPEC

TASK = ClientTask(
    spec=SPEC,
    unit=("rater", "raters"),
    schema=SCHEMA,
    table="ratings.csv",
    demo_units=200,
    read=reading("client.tasks.ratings.data.reader:read_raters"),
    write=write_raters,
    learner=imported("client.tasks.ratings.learner:RatingsLearner"),
    published=is_published,
    takes_splits=True,
    label=lambda rater: float(rater.ratings.mean()) if len(rater.ratings) else 0.0,
    generate=imported("client.tasks.ratings.data.generator:demo_raters"),
    summarize=imported("client.tasks.ratings.data.reader:summarize"),
)
