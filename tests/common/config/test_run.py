"""Rules between the sections of a configuration, and combinations that runs refuse."""

import pytest

from common.config.parse import configure_alone, parse
from common.config.run import find_obstacle, names_rows, resolve_rows
from common.errors import ConfigError
from common.methods.planners import PLANNERS, method_names
from common.methods.registry import METHODS
from common.options import Scalar
from common.tasks.registry import TASKS
from common.tasks.sessions.vocabulary import Items
from tests.support.configurations import refusal
from tests.support.plugins import install, noiseless
from tests.support.toys import CATALOGUE


@pytest.mark.parametrize("method", ["bgtplanner"])
def test_planners_that_learn_from_rewards_have_a_validation_split(method: str) -> None:
    noisy = {"method": method, "task": "ratings", "privacy.unit": "client"}
    assert parse(noisy).task_options.validation_share == 0.1
    assert parse({**noisy, "task": "rules"}).task_options.validation_share == 0.3
    assert parse({**noisy, "tasks.ratings.validation-share": 0.2}).task_options.validation_share == 0.2
    assert parse({**noisy, "method": "uniform"}).task_options.validation_share == 0
    with pytest.raises(ConfigError, match="the test split must not provide; set tasks"):
        parse({**noisy, "tasks.ratings.validation-share": 0.0})
    stopping = {**noisy, "method": "uniform", "planner.stop": "plateau"}
    assert parse(stopping).task_options.validation_share == 0.1
    with pytest.raises(ConfigError, match="the test split must not provide"):
        parse({**stopping, "tasks.ratings.validation-share": 0.0})


@pytest.mark.parametrize("stop", ["never", "plateau"])
def test_a_planner_with_the_norm_as_reward_has_no_validation_split(stop: str) -> None:
    by_norm = {"method": "bgtplanner", "privacy.unit": "client", "algorithm.bgtplanner.reward": "norm"}
    config = parse({**by_norm, "planner.stop": stop, "evaluate-every": 5})
    assert (config.planner.by_rewards, config.task_options.validation_share) == (False, 0)
    assert parse({**by_norm, "tasks.rules.validation-share": 0.2}).task_options.validation_share == 0.2


def test_fedrep_needs_a_step_for_the_shared_layers() -> None:
    reason = "head-steps = 3 leaves no step for the shared layers; set it below local-steps = 3"
    assert reason in refusal({"method": "fedrep", "algorithm.fedrep.head-steps": 3})


def test_fedstl_needs_time_series() -> None:
    assert (
        "fedstl clusters clients by properties of time series, which task 'rules' lacks; set task=traffic"
        in refusal({"method": "fedstl"})
    )


@pytest.mark.parametrize(
    ("optimizer", "control", "is_valid"),
    [
        ("sgd", "eq3", True),
        ("sgd", "grad_mean", True),
        ("sgd", "adam_literal", False),
        ("adam", "eq3", False),
        ("adam", "grad_mean", True),
        ("adam", "adam_literal", True),
    ],
)
def test_fedrule_refuses_a_control_that_does_not_match_the_optimizer(
    optimizer: str, control: str, is_valid: bool
) -> None:
    flat = {"training.optimizer": optimizer, "algorithm.fedrule.control": control}
    if is_valid:
        assert parse(flat).method_options.control == control
    else:
        assert "control=" in refusal(flat), "the message names the option to set"


def test_noise_that_a_method_does_not_support_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "set privacy.unit=client or privacy.unit=record" in refusal({"method": "bgtplanner"})
    install(monkeypatch, noiseless())
    assert "noiseless adds no noise" in refusal({"method": "noiseless", "privacy.unit": "client"})
    noisy = {"method": "bgtplanner", "privacy.unit": "client"}
    assert "set evaluate-every=1" in refusal({**noisy, "evaluate-every": 2})
    assert "set model=paper or privacy.unit=client" in refusal(
        {"method": "fedavg", "task": "sessions", "privacy.unit": "record"}
    )
    assert "batches of separate records" in refusal({"method": "fedavg", "task": "traffic", "privacy.unit": "record"})
    parse({"method": "fedavg", "task": "sessions", "model": "paper", "privacy.unit": "record"})
    assert "set privacy.mechanism=gaussian or privacy.unit=client" in refusal(
        {"privacy.unit": "record", "privacy.mechanism": "laplace"}
    )
    plain, even = parse({}), parse({"privacy.unit": "client"})
    assert (plain.needs_planner, even.needs_planner, even.planner.name) == (False, True, "uniform")


@pytest.mark.parametrize(
    ("flat", "message"),
    [
        (
            {"method": "pfedme"},
            "method 'pfedme' moved to the package fedloom-studies-personalization; pip install ./studies",
        ),
        ({"method": "fedsgd"}, "planner 'fedsgd' moved to the package fedloom-studies-planners; pip install ./studies"),
        ({"method": "uniform", "privacy.unit": "client", "planner.inner": "perfedavg"}, "pip install ./studies"),
    ],
)
def test_a_method_that_moved_is_refused_with_its_package(flat: dict[str, Scalar], message: str) -> None:
    assert message in refusal(flat)


def test_registered_names_are_those_of_the_options() -> None:
    assert all(METHODS[name].options.name == name for name in METHODS)
    assert set(PLANNERS) < set(method_names())
    assert all(TASKS[name].name == name for name in TASKS)


@pytest.mark.parametrize("encoding", ["float16", "int8"])
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"privacy.unit": "client"}, "does not apply to runs with noise; set federation.encoding=float32"),
        ({"task": "ratings", "tasks.ratings.items": "paper"}, "does not apply to runs with named rows"),
        ({"privacy.trust": "helpers"}, "rounds the numbers of single replies; set privacy.trust=local"),
    ],
)
def test_noise_named_rows_and_masks_are_refused(encoding: str, options: dict[str, Scalar], reason: str) -> None:
    assert f"federation.encoding={encoding} {reason}" in refusal({**options, "federation.encoding": encoding})


def test_other_runs_are_accepted_and_take_no_helpers_that_are_online() -> None:
    config = parse({"federation.encoding": "int8"})
    assert "federation.encoding=int8" in find_obstacle(config)
    assert not find_obstacle(parse({}))


def test_an_unheard_of_encoding_is_refused() -> None:
    assert "'float32', 'float16' or 'int8'" in refusal({"federation.encoding": "int4"})


SAMPLED: dict[str, Scalar] = {"task": "sessions", "method": "fedga", "tasks.sessions.loss": "sampled"}
NOISY: dict[str, Scalar] = {"privacy.unit": "client"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method": "fedrule"}, "fedrule moves all rows of a table in each step"),
        ({"method": "local"}, "local has a whole model on each client"),
        ({"method": "ditto"}, "ditto has a whole model on each client"),
        ({"method": "ifca"}, "ifca has a whole model on each client"),
        (
            {"method": "fedavg", "training.optimizer": "adam"},
            "Adam's persistent moments move rows that a round does not gather; set training.moments=reset",
        ),
        (
            {"method": "fedavg", "federation.robust": "median", "federation.min-replies": 3},
            "federation.robust=median would take rows that were not gathered for zeros",
        ),
        (
            {"method": "fedga", "federation.updates": "dense"},
            "federation.updates=dense sends whole tables, whose zeros name the same rows",
        ),
        (
            {"method": "fedavg", "model": "paper", "privacy.unit": "record"},
            "privacy.unit=record draws noise for all rows in each step",
        ),
    ],
)
def test_what_moves_or_needs_whole_tables_is_refused(options: dict[str, Scalar], reason: str) -> None:
    assert f"tasks.sessions.loss=sampled does not apply: {reason}" in refusal({**SAMPLED, **options})
    parse({"task": "sessions", **options})


@pytest.mark.parametrize("method", ["fedavg", "fedprox", "fedga", "fedadam", "fedyogi", "fedadagrad", "fedrep"])
def test_methods_that_move_gathered_rows_alone_are_accepted(method: str) -> None:
    assert names_rows(parse({**SAMPLED, "method": method}))


def test_rows_are_named_without_noise_and_masks_alone() -> None:
    assert not names_rows(parse({"task": "sessions", "method": "fedga"}))
    assert not names_rows(parse({**SAMPLED, **NOISY}))
    assert not names_rows(parse({**SAMPLED, "privacy.trust": "helpers"}))


def items(number: int) -> Items:
    return Items(items=tuple(f"item {k}" for k in range(number)))


def resolved(number: int = 2_000, **options: Scalar) -> str:
    flat = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    config = parse({"task": "sessions", "method": "fedga", "privacy.trust": "local", **flat})
    return str(resolve_rows(config, items(number)).task_options.model_dump()["loss"])


def test_many_items_are_sampled_by_default() -> None:
    assert (resolved(1_999), resolved(2_000)) == ("full", "sampled")
    assert resolved(1_999, tasks__sessions__loss="sampled") == "sampled"
    assert resolved(2_000, tasks__sessions__loss="full") == "full"


@pytest.mark.parametrize(
    "options",
    [
        {"privacy__unit": "client"},
        {"privacy__trust": "helpers"},
        {"method": "ditto"},
        {"method": "fedavg", "algorithm__fedavg__optimizer": "adam"},
        {"method": "fedavg", "federation__robust": "median", "federation__min_replies": 3},
        {"federation__updates": "dense"},
    ],
)
def test_runs_that_cannot_name_rows_keep_all_items(options: dict[str, Scalar]) -> None:
    assert resolved(**options) == "full"


def test_other_tasks_have_nothing_to_resolve() -> None:
    config = parse({"task": "rules", "method": "fedavg"})
    assert resolve_rows(config, CATALOGUE) is config


def test_each_client_alone_trains_on_all_items() -> None:
    alone = configure_alone(parse({**SAMPLED, "tasks.sessions.hidden": 8}), 3)
    assert (alone.method, alone.task_options.gathers_rows) == ("local", "")
    assert alone.task_options.model_dump()["hidden"] == 8
