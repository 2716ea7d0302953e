"""From a finished model to the next item, by name."""

import numpy as np
import pytest

from client.tasks.sessions.data.visitors import as_clicks
from client.tasks.sessions.inference import clicks_of, next_items
from common.config.parse import parse
from common.errors import DataError
from common.models import parameters
from common.tasks.sessions.counts import count_rules
from common.tasks.sessions.vocabulary import Items
from tests.support.build import task_model

ITEMS = Items(items=("tea", "coffee", "milk", "bread"))
CONFIG = parse({"method": "fedga", "task": "sessions", "tasks.sessions.hidden": 4})


def test_probabilities_are_of_all_items_and_history_counts() -> None:
    model = parameters(task_model(CONFIG, ITEMS))
    history = [as_clicks([0, 2])] * 50
    answers = next_items(CONFIG, ITEMS, model, as_clicks([0]), history, top=4)
    assert answers[0].item == "milk"
    assert sum(item.probability for item in answers) == pytest.approx(1)
    assert [item.probability for item in answers] == sorted((item.probability for item in answers), reverse=True)


def test_shared_rules_that_came_with_the_model_count() -> None:
    model = parameters(task_model(CONFIG, ITEMS))
    rules = count_rules([as_clicks([1, 3])] * 500, len(ITEMS.items))
    assert next_items(CONFIG, ITEMS, {**model, **rules}, as_clicks([1]), (), top=1)[0].item == "bread"


def test_a_session_is_read_by_names() -> None:
    np.testing.assert_array_equal(clicks_of(" milk, tea ,milk", ITEMS), [2, 0, 2])
    with pytest.raises(DataError, match="unknown item 'coffe'; did you mean 'coffee'"):
        clicks_of("coffe", ITEMS)
    with pytest.raises(DataError, match="the session is empty"):
        clicks_of(" , ", ITEMS)
