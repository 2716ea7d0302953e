"""Dotted keys are parsed; errors name the key and the closest valid key."""

import pytest

from common.config.federation import Federation
from common.config.parse import flatten, from_json, option_keys, parse, read_overrides, to_json
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.planners import PLANNERS, method_names
from common.methods.registry import METHODS
from common.options import Scalar
from tests.support.configurations import BARE, refusal


def test_an_empty_configuration_has_the_defaults() -> None:
    assert parse({}) == RunConfig()
    assert (parse({}).method, parse({}).method_options.name) == ("fedrule", "fedrule")


def test_flat_keys_set_their_options() -> None:
    config = parse(
        {
            "method": "fedprox",
            "rounds": 7,
            "run-id": "mine",
            "federation.min-clients": 4,
            "algorithm.fedprox.mu": 0.5,
            "tasks.rules.test-share": 0.3,
        }
    )
    assert (config.method, config.rounds, config.run_id) == ("fedprox", 7, "mine")
    assert config.federation == Federation(min_clients=4)
    assert config.method_options.mu == 0.5
    assert config.method_options is config.method_options
    assert config.task_options.test_share == 0.3


@pytest.mark.parametrize(
    ("key", "closest"),
    [
        ("algorithm.fedrule.lamda", "algorithm.fedrule.lam"),
        ("algorithm.fedrule.lam-predictr", "algorithm.fedrule.lam-predictor"),
        ("algorithm.fedrule.server-rate", "algorithm.fedrule.server-lr"),
        ("federation.min-client", "federation.min-clients"),
        ("tasks.rules.negative-ration", "tasks.rules.negatives"),
        ("round", "rounds"),
        ("tasks.rule.negatives", "tasks.rules.negatives"),
    ],
)
def test_an_unknown_key_is_refused_with_the_closest_key(key: str, closest: str) -> None:
    text = refusal({key: 1})
    unknown = key if not key.startswith("tasks.rule.") else "tasks.rule"
    assert text.startswith(f"unknown option '{unknown}'")
    if unknown == key:
        assert text == f"unknown option '{key}'; did you mean '{closest}'?"


@pytest.mark.parametrize(("section", "key"), [("algorithm", "method"), ("tasks", "task")])
def test_a_name_for_a_section_is_refused_with_the_key_that_chooses_it(section: str, key: str) -> None:
    assert refusal({section: "any"}) == f"option '{section}' is a section; set {key}=any, or {section}.NAME.OPTION"


def test_a_removed_option_is_refused_with_the_reason_and_its_old_default_is_accepted() -> None:
    text = "algorithm.fedstl.cluster-data was removed in 0.2; remove it: no client sends windows of training data"
    assert refusal({"algorithm.fedstl.cluster-data": "shared_sample"}) == text
    stored: dict[str, Scalar] = {"algorithm.fedstl.cluster-data": "none", "algorithm.fedstl.sample-windows": 64}
    fedstl: dict[str, Scalar] = {"method": "fedstl", "task": "traffic"}
    assert parse({**fedstl, **stored}) == parse(fedstl)


def test_an_unknown_key_without_a_close_key_is_refused() -> None:
    assert refusal({"zzz": 1}) == "unknown option 'zzz'"


def test_an_unknown_method_or_task_is_refused_with_the_closest_name() -> None:
    installed = ", ".join(method_names())
    assert refusal({"method": "fedrul"}) == f"unknown method 'fedrul'; did you mean 'fedrule'? installed: {installed}"
    assert refusal({"method": "xyz"}) == f"unknown method 'xyz'; installed: {installed}"
    assert (
        refusal({"task": "rule"})
        == "unknown task 'rule'; did you mean 'rules'? installed: markets, ratings, rules, sessions, traffic"
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rounds", "many"),
        ("rounds", 0),
        ("seed", -1),
        ("federation.cohort", 1.5),
        ("federation.deadline", 0),
        ("algorithm.fedrule.lam", 2.0),
        ("algorithm.fedrule.lam", -0.1),
        ("training.lr", "fast"),
        ("training.optimizer", "adamw"),
        ("tasks.rules.dropout", 1),
        ("model", "papers"),
    ],
)
def test_an_invalid_value_is_refused_with_its_key(key: str, value: Scalar) -> None:
    text = refusal({key: value})
    assert text.startswith(f"'{key}': ")
    assert text.endswith(f"(got {value!r})")


def test_all_errors_are_reported_at_once() -> None:
    text = refusal({"rounds": 0, "algorithm.fedrule.lamda": 1})
    assert "'rounds'" in text
    assert "'algorithm.fedrule.lamda'" in text


def test_a_key_is_a_value_or_a_section() -> None:
    assert (
        refusal({"federation": 3, "federation.cohort": 0.5})
        == "option 'federation' is set both to a value and as a section; remove one of them"
    )
    assert "federation" in refusal({"federation.cohort": 0.5, "federation": 3})


def test_options_of_another_method_are_refused() -> None:
    text = refusal({"method": "fedavg", "algorithm.fedrule.lam": 1.0})
    assert text == "option algorithm.fedrule.* has no effect with method fedavg; remove it or set method=fedrule"


@pytest.mark.parametrize(
    ("assignment", "pair"),
    [
        ("rounds=3", {"rounds": 3}),
        ("a.b=1.5", {"a.b": 1.5}),
        ("a=true", {"a": True}),
        ("method=fedavg", {"method": "fedavg"}),
        ('method="fedavg"', {"method": "fedavg"}),
        ("catalogue=/a/b=c.json", {"catalogue": "/a/b=c.json"}),
        (" rounds = 3", {"rounds": 3}),
        ("run-id=", {"run-id": ""}),
        ("a=-1e-3", {"a": -1e-3}),
    ],
)
def test_values_are_toml_scalars_or_text(assignment: str, pair: dict[str, Scalar]) -> None:
    assert read_overrides([assignment]) == pair


def test_the_last_assignment_of_a_key_is_used() -> None:
    assert read_overrides(["rounds=3", "rounds=4"]) == {"rounds": 4}


@pytest.mark.parametrize("assignment", ["rounds", "=3", " =3", ""])
def test_an_assignment_without_key_or_equals_sign_is_refused(assignment: str) -> None:
    with pytest.raises(
        ConfigError, match=r"--set .* is not an assignment; write key=value, for example algorithm\.fedrule\.lam=1\.0"
    ):
        read_overrides([assignment])


@pytest.mark.parametrize("assignment", ["rounds=[1, 2]", "federation={cohort = 0.5}x", "rounds=2024-01-01"])
def test_a_value_that_is_not_a_scalar_is_refused(assignment: str) -> None:
    with pytest.raises(ConfigError):
        parse(read_overrides([assignment]))


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
    options: dict[str, Scalar] = {"planner.inner": "fedga", "planner.patience": 3, "training.lr": 0.5}
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
