"""The configuration: flat keys in, one frozen value out, and answers that help."""

import pytest

from common.config.federation import Federation
from common.config.flatten import flatten, from_json, to_json
from common.config.overrides import overrides
from common.config.parse import option_keys, parse
from common.config.run import RunConfig
from common.errors import ConfigError
from common.methods.registry import METHODS, method_names
from common.options import Scalar
from common.tasks.registry import TASKS

PLANNERS = ("bgtplanner", "uniform", "adpml", "adap", "fedsgd")
TASK_OF = {"fedstl": "traffic", "pfgnn": "markets"}
NOISE: dict[str, dict[str, Scalar]] = {planner: {"privacy.unit": "client"} for planner in PLANNERS[:4]}
BARE: dict[str, dict[str, Scalar]] = {
    method: {"method": method, "task": TASK_OF.get(method, "rules")} | NOISE.get(method, {})
    for method in method_names()
}
"""A method alone, with a task it can train on."""


@pytest.mark.parametrize("method", ["bgtplanner", "adap"])
def test_planners_are_not_judged_by_test_data(method: str) -> None:
    noisy = {"method": method, "task": "ratings", "privacy.unit": "client"}
    assert parse(noisy).task_options.validation_share == 0.1
    assert parse({**noisy, "task": "rules"}).task_options.validation_share == 0.3
    assert parse({**noisy, "tasks.ratings.validation-share": 0.2}).task_options.validation_share == 0.2
    assert parse({**noisy, "method": "uniform"}).task_options.validation_share == 0
    with pytest.raises(ConfigError, match="which test data must not tell; set tasks"):
        parse({**noisy, "tasks.ratings.validation-share": 0.0})
    stopping = {**noisy, "method": "uniform", "algorithm.uniform.stop": "plateau"}
    assert parse(stopping).task_options.validation_share == 0.1
    with pytest.raises(ConfigError, match="which test data must not tell"):
        parse({**stopping, "tasks.ratings.validation-share": 0.0})


@pytest.mark.parametrize("stop", ["never", "plateau"])
def test_a_planner_that_goes_by_the_norm_of_updates_holds_nothing_out(stop: str) -> None:
    by_norm = {"method": "bgtplanner", "privacy.unit": "client", "algorithm.bgtplanner.reward": "norm"}
    config = parse({**by_norm, "algorithm.bgtplanner.stop": stop, "evaluate-every": 5})
    assert (config.planner.by_rewards, config.task_options.validation_share) == (False, 0)
    assert parse({**by_norm, "tasks.rules.validation-share": 0.2}).task_options.validation_share == 0.2


def test_fedrep_leaves_steps_to_the_shared_layers() -> None:
    reason = "head-steps 3 leaves no step to the shared layers; local-steps is 3"
    assert reason in refusal({"method": "fedrep", "algorithm.fedrep.head-steps": 3})


def test_fedstl_needs_series() -> None:
    assert "fedstl clusters clients by properties of time series; task 'rules' has none, set task=traffic" in refusal(
        {"method": "fedstl"}
    )


def refusal(flat: dict[str, Scalar]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(flat)
    return str(caught.value)


def test_nothing_set_gives_the_defaults() -> None:
    assert parse({}) == RunConfig()
    assert (parse({}).method, parse({}).method_options.name) == ("fedrule", "fedrule")


def test_flat_keys_reach_their_options() -> None:
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
    ("key", "meant"),
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
def test_an_unknown_key_is_answered_with_its_path_and_the_one_meant(key: str, meant: str) -> None:
    text = refusal({key: 1})
    unknown = key if not key.startswith("tasks.rule.") else "tasks.rule"
    assert text.startswith(f"unknown option '{unknown}'")
    if unknown == key:
        assert text == f"unknown option '{key}'; did you mean '{meant}'?"


def test_an_unknown_key_like_no_other_is_just_named() -> None:
    assert refusal({"zzz": 1}) == "unknown option 'zzz'"


def test_a_mistyped_method_is_answered_with_the_one_meant() -> None:
    assert refusal({"method": "fedrul"}) == "unknown method 'fedrul'; did you mean 'fedrule'?"
    assert refusal({"method": "xyz"}) == f"unknown method 'xyz'; choose one of {', '.join(method_names())}"
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
        ("algorithm.fedrule.lr", "fast"),
        ("algorithm.fedrule.optimizer", "adamw"),
        ("tasks.rules.dropout", 1),
        ("model", "papers"),
    ],
)
def test_a_wrong_value_is_named_with_its_path_and_what_was_given(key: str, value: Scalar) -> None:
    text = refusal({key: value})
    assert text.startswith(f"'{key}': ")
    assert text.endswith(f"(got {value!r})")


def test_all_mistakes_are_named_at_once() -> None:
    text = refusal({"rounds": 0, "algorithm.fedrule.lamda": 1})
    assert "'rounds'" in text
    assert "'algorithm.fedrule.lamda'" in text


def test_a_key_cannot_be_a_value_and_a_section() -> None:
    assert (
        refusal({"federation": 3, "federation.cohort": 0.5})
        == "option 'federation' is set both to a value and as a section; remove one of them"
    )
    assert "federation" in refusal({"federation.cohort": 0.5, "federation": 3})


def test_options_of_a_method_not_chosen_are_refused() -> None:
    text = refusal({"method": "fedavg", "algorithm.fedrule.lam": 1.0})
    assert text == "option algorithm.fedrule.* has no effect with method fedavg; remove it or set method=fedrule"


@pytest.mark.parametrize(
    ("optimizer", "control", "fine"),
    [
        ("sgd", "eq3", True),
        ("sgd", "grad_mean", True),
        ("sgd", "adam_literal", False),
        ("adam", "eq3", False),
        ("adam", "grad_mean", True),
        ("adam", "adam_literal", True),
    ],
)
def test_fedrules_control_fits_its_optimizer(optimizer: str, control: str, fine: bool) -> None:
    flat = {"algorithm.fedrule.optimizer": optimizer, "algorithm.fedrule.control": control}
    if fine:
        assert parse(flat).method_options.control == control
    else:
        assert "control=" in refusal(flat), "and the text says what to set instead"


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
def test_assignments_are_toml_scalars_or_bare_words(assignment: str, pair: dict[str, Scalar]) -> None:
    assert overrides([assignment]) == pair


def test_of_two_assignments_the_last_counts() -> None:
    assert overrides(["rounds=3", "rounds=4"]) == {"rounds": 4}


@pytest.mark.parametrize("assignment", ["rounds", "=3", " =3", ""])
def test_an_assignment_without_key_or_value_is_refused_with_an_example(assignment: str) -> None:
    with pytest.raises(ConfigError, match=r"--set .*: write it as key=value, for example algorithm\.fedrule\.lam=1\.0"):
        overrides([assignment])


@pytest.mark.parametrize("assignment", ["rounds=[1, 2]", "federation={cohort = 0.5}x", "rounds=2024-01-01"])
def test_a_value_that_is_no_scalar_ends_as_a_config_error(assignment: str) -> None:
    with pytest.raises(ConfigError):
        parse(overrides([assignment]))


@pytest.mark.parametrize("method", list(METHODS))
def test_a_configuration_survives_flattening_and_travelling(method: str) -> None:
    config = parse({**BARE[method], f"algorithm.{method}.lr": 0.123, "run-id": "π"})
    flat = flatten(config)
    assert parse(flat) == from_json(to_json(config)) == config
    assert flat[f"algorithm.{method}.lr"] == 0.123
    assert {key.split(".")[1] for key in flat if key.startswith("algorithm.")} == {method}, "others are left out"
    assert all(isinstance(value, (bool, int, float, str)) for value in flat.values()), "as Flower's run config wants"


@pytest.mark.parametrize("method", PLANNERS)
def test_a_planner_brings_the_method_inside(method: str) -> None:
    own = {f"algorithm.{method}.inner": "fedga", f"algorithm.{method}.patience": 3, "algorithm.fedga.lr": 0.5}
    config = parse({**BARE[method], **own})
    assert from_json(to_json(config)) == config
    assert (config.planner.name, config.method_options.name, config.method_options.rate("x")) == (method, "fedga", 0.5)
    assert config.planned
    sections = {key.split(".")[1] for key in flatten(config) if key.startswith("algorithm.")}
    assert sections == {method, "fedga"}
    assert "option algorithm.fedavg.* has no effect" in refusal({**BARE[method], **own, "algorithm.fedavg.lr": 0.5})


def test_noise_and_methods_must_fit() -> None:
    assert "set privacy.unit=client or privacy.unit=record" in refusal({"method": "bgtplanner"})
    assert "fedsgd adds no noise" in refusal({"method": "fedsgd", "privacy.unit": "client"})
    noisy = {"method": "bgtplanner", "privacy.unit": "client"}
    assert "leave evaluate-every at 1" in refusal({**noisy, "evaluate-every": 2})
    assert "set model=paper or privacy.unit=client" in refusal(
        {"method": "fedavg", "task": "sessions", "privacy.unit": "record"}
    )
    assert "batches of separate records" in refusal({"method": "fedavg", "task": "traffic", "privacy.unit": "record"})
    parse({"method": "fedavg", "task": "sessions", "model": "paper", "privacy.unit": "record"})
    assert "DP-SGD adds Gaussian noise" in refusal({"privacy.unit": "record", "privacy.mechanism": "laplace"})
    plain, even = parse({}), parse({"privacy.unit": "client"})
    assert (plain.planned, even.planned, even.planner.name) == (False, True, "uniform")


def test_equal_configurations_are_equal_texts() -> None:
    assert to_json(parse({"rounds": 3, "seed": 1})) == to_json(parse({"seed": 1, "rounds": 3}))


@pytest.mark.parametrize("method", method_names())
def test_every_known_key_of_a_method_can_be_set_to_its_default(method: str) -> None:
    flat = flatten(parse(BARE[method]))
    assert set(flat) <= set(option_keys())
    for key, value in flat.items():
        assert parse({**BARE[method], key: value}) == parse(BARE[method])


def test_methods_are_named_as_their_options_are() -> None:
    assert all(METHODS[name].options.name == name for name in METHODS)
    assert set(PLANNERS) < set(method_names())
    assert all(TASKS[name].name == name for name in TASKS)
