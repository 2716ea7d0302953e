"""Configurations as dotted keys and as text."""

import pytest

from common.config.parse import flatten, from_json, option_keys, parse, to_json
from common.methods.planners import PLANNERS, method_names
from common.methods.registry import METHODS
from tests.support.configurations import BARE, refusal


@pytest.mark.parametrize("method", list(METHODS))
def test_a_configuration_is_equal_after_flattening(method: str) -> None:
    config = parse({**BARE[method], "training.lr": 0.123, "run-id": "π"})
    flat = flatten(config)
    assert parse(flat) == from_json(to_json(config)) == config
    assert flat["training.lr"] == 0.123
    assert {key.split(".")[1] for key in flat if key.startswith("algorithm.")} <= {method}, (
        "sections of other methods are omitted"
    )
    assert all(isinstance(value, (bool, int, float, str)) for value in flat.values()), "types of Flower's run config"


@pytest.mark.parametrize("method", PLANNERS)
def test_a_planner_is_flattened_with_its_inner_method(method: str) -> None:
    options = {"planner.inner": "fedga", "planner.patience": 3, "training.lr": 0.5}
    config = parse({**BARE[method], **options})
    assert from_json(to_json(config)) == config
    assert (config.planner.name, config.method_options.name, config.method_options.rate("x")) == (method, "fedga", 0.5)
    assert config.needs_planner
    sections = {key.split(".")[1] for key in flatten(config) if key.startswith("algorithm.")}
    assert {"fedga"} <= sections <= {method, "fedga"}
    assert "option algorithm.fedavg.* has no effect" in refusal(
        {**BARE[method], **options, "algorithm.fedavg.momentum": 0.5}
    )


def test_equal_configurations_have_equal_texts() -> None:
    assert to_json(parse({"rounds": 3, "seed": 1})) == to_json(parse({"seed": 1, "rounds": 3}))


@pytest.mark.parametrize("method", method_names())
def test_every_key_of_a_method_accepts_its_default(method: str) -> None:
    flat = flatten(parse(BARE[method]))
    assert set(flat) <= set(option_keys())
    for key, value in flat.items():
        assert parse({**BARE[method], key: value}) == parse(BARE[method])
