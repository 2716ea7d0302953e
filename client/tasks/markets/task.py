"""Client task of the markets task."""

from client.tasks.markets.data.markets import SCHEMA, is_published, write_markets
from client.tasks.registry import ClientTask, reading
from common.registry import imported
from common.tasks.markets.task import TASK as SPEC

TASK = ClientTask(
    spec=SPEC,
    unit=("market", "markets"),
    schema=SCHEMA,
    table="market.csv",
    demo_units=6,
    read=reading("client.tasks.markets.data.reader:read_markets"),
    write=write_markets,
    learner=imported("client.tasks.markets.learner:MarketsLearner"),
    published=is_published,
    generate=imported("client.tasks.markets.data.generator:demo_markets"),
    warnings=imported("client.tasks.markets.data.graph:warn"),
    client_per_unit=True,
    public_units=True,
    summarize=imported("client.tasks.markets.data.reader:summarize"),
)
