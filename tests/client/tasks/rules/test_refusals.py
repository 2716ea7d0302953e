"""Harmful rules are refused whatever their score; safe ones are not."""

import re

import numpy as np
import pytest

from client.owner.policy import Policy
from client.tasks.rules.data.homes import Device, Home, as_edges
from client.tasks.rules.inference import list_rules
from client.tasks.rules.lists import ListOptions
from client.tasks.rules.refusals import SIDES, reason_of, refused, table
from common.errors import ConfigError
from common.tasks.rules.vocabulary import RuleCatalogue

HARMFUL = (
    ("Contact sensor window", "opens", "turn on", "Thermostat living"),
    ("Contact sensor window", "opens", "set the temperature of", "Thermostat living"),
    ("Contact sensor", "opens", "toggle", "Water heater"),
    ("Person sam", "leaves home", "turn on", "Thermostat"),
    ("Smoke alarm", "detects smoke", "turn on", "Thermostat"),
    ("Thermostat", "gets too warm", "turn up", "Thermostat"),
    ("Temperature sensor", "falls below a value", "turn off", "Thermostat"),
    ("Contact sensor front door", "opens", "close", "Valve main water"),
    ("Leak sensor", "detects a leak", "open", "Valve main water"),
    ("Leak sensor", "detects no leak", "open", "Valve gas"),
    ("Leak sensor", "detects a leak", "turn on", "Switch pump"),
    ("Leak sensor", "detects a leak", "turn on", "Smart plug"),
    ("Motion sensor", "detects motion", "unlock", "Door lock front"),
    ("Person sam", "leaves home", "unlock", "Door lock front"),
    ("Presence sensor", "detects absence", "toggle", "Door lock"),
    ("Smoke alarm", "detects smoke", "lock", "Door lock front"),
    ("Contact sensor", "opens", "lock", "Door lock front"),
    ("Motion sensor", "detects motion", "open", "Garage door"),
    ("Motion sensor", "detects motion", "close", "Garage door"),
    ("Sun", "rises", "open", "Gate drive"),
    ("Sun", "rises", "turn on", "Switch garage door opener"),
    ("Motion sensor", "sees no motion", "open", "Window roof"),
    ("Smoke alarm", "detects smoke", "close", "Blind living"),
    ("Contact sensor", "opens", "turn on", "Siren"),
    ("Motion sensor", "detects motion", "sound the siren of", "Camera"),
    ("Motion sensor", "detects motion", "trigger", "Alarm panel"),
    ("Smoke alarm", "detects smoke", "turn off", "Siren"),
    ("Person", "comes home", "disarm", "Alarm panel"),
    ("Person", "comes home", "arm for away", "Alarm panel"),
    ("Motion sensor", "detects motion", "turn on", "Switch oven"),
    ("Motion sensor", "detects motion", "turn on", "Smart plug Heater"),
    ("Contact sensor", "opens", "toggle", "Switch kitchen kettle"),
    ("Leak sensor", "detects a leak", "turn on", "Group stove"),
    ("Clock", "reaches a time", "turn on", "Smart plug iron"),
    ("wemo_motion wemo_motion", "any", "turn", "wemo_slow_cooker wemo_slow_cooker"),
    ("ContactSensor", "opens", "turn up", "Thermostat"),
    ("Person", "leaves home", "turn off", "Camera porch"),
    ("Smoke alarm", "detects smoke", "turn off", "Light hall"),
    ("Smoke alarm", "detects smoke", "turn on", "Fan"),
    ("Motion sensor", "sees no motion", "turn off", "Switch freezer"),
    ("Contact sensor", "opens", "start", "Lawn mower"),
    ("Leak sensor", "detects a leak", "start", "Robot vacuum"),
)

HARMLESS = (
    ("Contact sensor window", "opens", "turn off", "Thermostat living"),
    ("Contact sensor window", "closes", "turn on", "Thermostat living"),
    ("Leak sensor", "detects a leak", "close", "Valve main water"),
    ("Leak sensor", "detects a leak", "turn on", "Siren hall"),
    ("Leak sensor", "detects a leak", "turn off", "Smart plug"),
    ("Smoke alarm", "detects smoke", "open", "Blind living"),
    ("Smoke alarm", "detects smoke", "unlock", "Door lock front"),
    ("Smoke alarm", "detects smoke", "turn on", "Light hall"),
    ("Person sam", "leaves home", "lock", "Door lock front"),
    ("Person sam", "leaves home", "turn off", "Thermostat"),
    ("Person sam", "leaves home", "arm for away", "Alarm panel"),
    ("Person sam", "comes home", "turn on", "Light hall"),
    ("Motion sensor garage", "detects motion", "turn on", "Light garage door"),
    ("Motion sensor", "detects motion", "toggle", "Light boiler room"),
    ("Button", "is pressed", "open", "Garage door"),
    ("Wall switch", "is pressed twice", "unlock", "Door lock"),
    ("Blind living", "opens", "turn on", "Thermostat"),
    ("Sun", "sets", "close", "Blind garage"),
    ("Clock", "reaches a time", "turn on", "Switch coffee machine"),
    ("Clock", "reaches a time", "open", "Valve garden"),
    ("Clock", "reaches a time", "start", "Lawn mower"),
    ("Humidity sensor", "rises above a value", "turn on", "Fan bath"),
    ("Zone work", "is left", "turn on", "Thermostat"),
    ("instagram instagram", "any_new_photo_by_you", "post_a_tweet_with_image", "twitter twitter"),
)


@pytest.mark.parametrize(("trigger", "state", "action", "device"), HARMFUL)
def test_a_harmful_rule_is_refused_with_its_reason(trigger: str, state: str, action: str, device: str) -> None:
    assert " " in reason_of(trigger, state, action, device)


@pytest.mark.parametrize(("trigger", "state", "action", "device"), HARMLESS)
def test_a_safe_rule_is_not_refused(trigger: str, state: str, action: str, device: str) -> None:
    assert reason_of(trigger, state, action, device) == ""


def test_no_score_shows_a_refused_rule_but_the_owner_can_allow_it() -> None:
    catalogue = RuleCatalogue(
        entities=("Contact sensor", "Thermostat"), relations=("opens → turn off", "opens → turn on")
    )
    home = Home("h", (Device("door", 0), Device("heating", 1)), as_edges([]))
    scores = np.full((2, 2, 2), -9.0)
    scores[0, 1] = 2.0, 99.0
    for allowed, action in (((), "turn off"), (("heat-when-open",), "turn on")):
        [found], _ = list_rules(
            scores, home, catalogue, ListOptions(9, least=-5.0, allowed=Policy(allow_harm=allowed).allow_harm)
        )
        assert found.action == action
    assert refused(home, catalogue).tolist()[0][1] == [False, True]
    with pytest.raises(ConfigError, match="unknown 'heat-when-opn'; did you mean 'heat-when-open'"):
        list_rules(scores, home, catalogue, ListOptions(allowed=("heat-when-opn",)))


def test_the_table_is_well_formed() -> None:
    pairs = table()["pair"]
    assert len({pair["name"] for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert pair["action"] in table()["actions"]
        assert {*pair.get("on", ()), *pair.get("but", ())} <= table()["events"].keys()
        assert pair["reason"]
        assert pair.get("on") or pair.get("but")
    assert {pair["action"] for pair in pairs} == table()["actions"].keys()
    for side in SIDES:
        assert all(re.compile(pattern) for pattern in table()[side].values())
