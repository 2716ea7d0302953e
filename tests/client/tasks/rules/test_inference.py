"""Recommended rules: not in the home yet, between two devices, and possible for both."""

import json

import numpy as np
import pytest

from client.tasks.rules.inference import recommend
from common.config.parse import parse
from common.errors import DataError
from common.models import parameters
from common.tasks.rules.demo import ACTIONS, STATES, demo_catalogue
from common.tasks.rules.vocabulary import RuleCatalogue
from tests.support.build import task_model
from tests.support.toys import CATALOGUE, toy_homes

CONFIG = parse({"method": "fedavg", "task": "rules", "run-id": "toy", "rounds": 1})
HOME = toy_homes(3)[2]


def rules(catalogue: RuleCatalogue, top: int = 10_000) -> list[str]:
    trained = parameters(task_model(CONFIG, catalogue))
    return [answer.rule for answer in recommend(CONFIG, catalogue, trained, HOME, top)]


def test_every_missing_rule_between_two_devices_is_ranked() -> None:
    devices, relations = len(HOME.devices), len(CATALOGUE.relations)
    assert len(rules(CATALOGUE)) == devices * (devices - 1) * relations - len(HOME.rules)
    assert rules(CATALOGUE, 3) == rules(CATALOGUE)[:3]


def test_rules_beyond_the_devices_abilities_are_left_out() -> None:
    first = CATALOGUE.relations[0].partition(" → ")
    trigger_type, action_type = CATALOGUE.entities[:2]
    able = CATALOGUE.model_copy(update={"notices": {trigger_type: (first[0],)}, "does": {action_type: (first[2],)}})
    possible = rules(able)
    triggers = sum(CATALOGUE.entities[device.entity] == trigger_type for device in HOME.devices)
    actions = sum(CATALOGUE.entities[device.entity] == action_type for device in HOME.devices)
    existing = sum(
        (CATALOGUE.entities[HOME.devices[i].entity], CATALOGUE.entities[HOME.devices[j].entity], r)
        == (trigger_type, action_type, 0)
        for i, j, r in HOME.rules.tolist()
    )
    same = sum(name.startswith(first[0]) and name.endswith(first[2]) for name in CATALOGUE.relations)
    assert len(possible) == triggers * actions * same - existing
    assert set(possible) < set(rules(CATALOGUE))


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
