"""Recommended rules: not in the home yet, between two devices, and possible for both."""

import json

import numpy as np
import pytest

from client.tasks.rules.data.homes import Home, as_edges
from client.tasks.rules.inference import recommend
from client.tasks.rules.lists import ListOptions
from common.config.parse import parse
from common.errors import DataError
from common.models import parameters
from common.tasks.rules.vocabulary import ACTIONS, OPPOSITES, STATES, RuleCatalogue, demo_catalogue, relation_parts
from tests.support.build import task_model
from tests.support.toys import CATALOGUE, toy_homes

CONFIG = parse({"method": "fedavg", "task": "rules", "run-id": "toy", "rounds": 1})
HOME = toy_homes(3)[2]


@pytest.fixture(autouse=True)
def every_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show rules of untrained models, none of which is likely."""
    monkeypatch.setattr("client.tasks.rules.lists.LEAST", -100.0)


def rules(catalogue: RuleCatalogue, top: int = 10_000, home: Home = HOME) -> list[str]:
    trained = parameters(task_model(CONFIG, catalogue))
    return [answer.rule for answer in recommend(CONFIG, catalogue, trained, home, ListOptions(top))[0]]


def test_a_shorter_list_is_the_start_of_a_longer_one() -> None:
    assert len(rules(CATALOGUE)) > 1
    assert rules(CATALOGUE, 2)[:1] == rules(CATALOGUE)[:1]


def test_rules_beyond_the_devices_abilities_are_left_out() -> None:
    free = Home("new", HOME.devices, as_edges([]))
    first = CATALOGUE.relations[0].partition(" → ")
    trigger_type, action_type = CATALOGUE.entities[:2]
    able = CATALOGUE.model_copy(update={"notices": {trigger_type: (first[0],)}, "does": {action_type: (first[2],)}})
    possible = rules(able, home=free)
    assert possible
    assert all(first[0] in one and first[2] in one for one in possible)


def test_a_recommendation_has_a_score_a_reason_and_the_columns_of_rules_data() -> None:
    trained = parameters(task_model(CONFIG, CATALOGUE))
    [answer], empty = recommend(CONFIG, CATALOGUE, trained, HOME, ListOptions(1))
    assert 0 <= answer.score <= 1
    assert answer.score == round(answer.score, 2)
    assert answer.why
    assert answer.trigger_device in CATALOGUE.entities
    assert answer.action_device_id in {device.name for device in HOME.devices}
    assert (answer.trigger_state, answer.action) in map(relation_parts, CATALOGUE.relations)
    assert empty == ""


def test_the_demo_vocabulary_names_the_devices_abilities() -> None:
    catalogue = demo_catalogue()
    triggers, actions = catalogue.possible()
    for k, name in enumerate(catalogue.entities):
        for r, relation in enumerate(catalogue.relations):
            state, _, action = relation.partition(" → ")
            assert triggers[k, r] == (state in STATES[name])
            assert actions[k, r] == (action in ACTIONS.get(name, ()))


def test_unknown_abilities_are_not_written() -> None:
    assert set(json.loads(CATALOGUE.to_json())) == {"entities", "relations"}
    assert RuleCatalogue.from_json(demo_catalogue().to_json()) == demo_catalogue()
    assert np.all(CATALOGUE.possible())


def test_abilities_of_an_unknown_type_are_refused() -> None:
    with pytest.raises(DataError, match="'Teapot'"):
        RuleCatalogue.from_json(
            '{"entities": ["Light"], "relations": ["opens → turn on"], "does": {"Teapot": ["boil"]}}'
        )


def test_opposites_beyond_the_default_pairs_are_written() -> None:
    assert CATALOGUE.opposites == OPPOSITES
    own = CATALOGUE.model_copy(update={"opposites": (("heat", "cool"),)})
    assert json.loads(own.to_json())["opposites"] == [["heat", "cool"]]
    assert RuleCatalogue.from_json(own.to_json()) == own
    with pytest.raises(DataError, match="without a letter"):
        RuleCatalogue.from_json('{"entities": [], "relations": [], "opposites": [["on", "->"]]}')
