"""Client task of the markets task."""

from client.data.dataset import Source
from client.tasks.markets.data.markets import SCHEMA, Markets, is_published, write_markets
from client.tasks.registry import ClientTask
from common.registry import imported
from common.tasks.markets.task import TASK as SPEC
from common.tasks.markets.vocabulary import MarketCatalogue


def read(source: Source, catalogue: MarketCatalogue | None, seed: int) -> Markets:
    """Read a source in any of its forms."""
    from client.tasks.markets.data.reader import read_markets

    return read_markets(source.text, catalogue, dialect=source.dialect)


TASK = ClientTask(
    spec=SPEC,
    unit=("market", "markets"),
    schema=SCHEMA,
    table="market.csv",
    demo_units=6,
    read=read,
    write=write_markets,
    learner=imported("client.tasks.markets.learner:MarketsLearner"),
    published=is_published,
    generate=imported("client.tasks.markets.data.generator:demo_markets"),
    warnings=imported("client.tasks.markets.data.graph:warn"),
    client_per_unit=True,
    public_units=True,
    summarize=imported("client.tasks.markets.data.reader:summarize"),
)
