"""Which vocabulary belongs to which task."""

from typing import assert_never

from common.config import Task
from common.tasks.markets import Goods
from common.tasks.markets_demo import demo_goods
from common.tasks.ratings import Products
from common.tasks.ratings_demo import demo_products
from common.tasks.rules import Catalogue
from common.tasks.rules_demo import demo_catalogue
from common.tasks.sessions import Items
from common.tasks.sessions_demo import demo_items
from common.tasks.traffic import Measures
from common.tasks.traffic_demo import demo_measures

Names = Catalogue | Items | Measures | Products | Goods
"""A closed union, so that the type checker names every place a new task must be added."""


def vocabulary_of(task: Task, text: str) -> Names:
    """A task's vocabulary from its JSON.

    Raises:
        DataError: Not such a vocabulary.
    """
    match task:
        case "rules":
            return Catalogue.from_json(text)
        case "sessions":
            return Items.from_json(text)
        case "traffic":
            return Measures.from_json(text)
        case "ratings":
            return Products.from_json(text)
        case "markets":
            return Goods.from_json(text)
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
