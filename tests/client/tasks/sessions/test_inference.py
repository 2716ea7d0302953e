"""From a finished model to the next item, by name."""

import re

import numpy as np
import pytest

from client.tasks.lists import ItemFilter
from client.tasks.sessions.data.visitors import as_clicks
from client.tasks.sessions.inference import clicks_of, next_items
from common.config.parse import parse
from common.errors import DataError
from common.models import parameters
from common.tasks.sessions.vocabulary import Items
from tests.support.build import task_model

ITEMS = Items(items=("tea", "coffee", "milk", "bread"))
CONFIG = parse({"method": "fedga", "task": "sessions", "tasks.sessions.hidden": 4})


def test_scores_are_shares_of_all_items_and_history_counts() -> None:
    model = parameters(task_model(CONFIG, ITEMS))
    history = [as_clicks([0, 2])] * 50
    answers = next_items(CONFIG, ITEMS, model, as_clicks([0]), history, top=4)
    assert answers[0].item == "milk"
    assert sum(item.score for item in answers) == pytest.approx(1)
    assert [item.score for item in answers] == sorted((item.score for item in answers), reverse=True)


def test_seen_items_may_be_hidden_and_ties_are_broken_by_item() -> None:
    zeros = {name: np.zeros_like(a) for name, a in parameters(task_model(CONFIG, ITEMS)).items()}
    clicks, history = as_clicks([2]), [as_clicks([0, 3])]
    hidden = next_items(CONFIG, ITEMS, zeros, clicks, history, 4, ItemFilter.seen(hide=True))
    assert [item.item for item in hidden] == ["coffee"]
    tied = next_items(CONFIG, ITEMS, zeros, clicks, (), 4)
    assert [item.item for item in tied] == list(ITEMS.items)


def test_a_reason_names_own_clicks_first() -> None:
    model = parameters(task_model(CONFIG, ITEMS))
    history = [as_clicks([0, 2]), as_clicks([3, 1])]
    without = {i.item: i.why for i in next_items(CONFIG, ITEMS, model, as_clicks([0]), history, 4)}
    assert without["milk"] == "you went there from 'tea' before"
    assert without["bread"] == "you clicked it in an earlier session"
    assert without["tea"] == "you clicked it in an earlier session"
    nobody = {i.item: i.why for i in next_items(CONFIG, ITEMS, model, as_clicks([0]), (), 4)}
    assert nobody["tea"] == "you clicked it in this session"
    assert nobody["milk"] == "learnt by the federation"
    assert not any(re.search(r"\d", why) for why in (*without.values(), *nobody.values()))


def test_a_session_is_read_by_names() -> None:
    np.testing.assert_array_equal(clicks_of(" milk, tea ,milk", ITEMS), [2, 0, 2])
    with pytest.raises(DataError, match="unknown item 'coffe'; did you mean 'coffee'"):
        clicks_of("coffe", ITEMS)
    with pytest.raises(DataError, match="the session is empty"):
        clicks_of(" , ", ITEMS)
