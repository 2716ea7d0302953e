"""Which vocabulary belongs to which task."""

from typing import assert_never

from common.config.run import Task
from common.tasks.markets.demo import demo_goods
from common.tasks.markets.options import MarketCatalogue
from common.tasks.ratings.demo import demo_products
from common.tasks.ratings.options import ProductCatalogue
from common.tasks.rules.demo import demo_catalogue
from common.tasks.rules.options import RuleCatalogue
from common.tasks.sessions.demo import demo_items
from common.tasks.sessions.options import Items
from common.tasks.traffic.demo import demo_measures
from common.tasks.traffic.options import SensorVariables

Names = RuleCatalogue | Items | SensorVariables | ProductCatalogue | MarketCatalogue
"""A closed union, so that the type checker names every place a new task must be added."""


def vocabulary_of(task: Task, text: str) -> Names:
    """A task's vocabulary from its JSON.

    Raises:
        DataError: Not such a vocabulary.
    """
    match task:
        case "rules":
            return RuleCatalogue.from_json(text)
        case "sessions":
            return Items.from_json(text)
        case "traffic":
            return SensorVariables.from_json(text)
        case "ratings":
            return ProductCatalogue.from_json(text)
        case "markets":
            return MarketCatalogue.from_json(text)
        case _:
            assert_never(task)


def demo_vocabulary(task: Task) -> Names:
    """The vocabulary of a task's embedded data."""
    match task:
        case "rules":
            return demo_catalogue()
        case "sessions":
            return demo_items()
        case "traffic":
            return demo_measures()
        case "ratings":
            return demo_products()
        case "markets":
            return demo_goods()
        case _:
            assert_never(task)
