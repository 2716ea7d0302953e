"""Sections `[training]` and `[planner]`, which methods and planners share, and the former keys of their options."""

import json
import logging
from pathlib import Path

import pytest

from common.config.keys import REMOVED, note_renamed, overlay, respell
from common.config.parse import flatten, from_json, option_keys, parse, read_names, read_overrides, to_json
from common.errors import ConfigError
from common.options import Scalar
from deploy.federation.request import read_config_file
from server.app import _named
from tests.support.configurations import BARE, refusal

PLANNED: dict[str, Scalar] = {"method": "uniform", "privacy.unit": "client", "planner.inner": "fedga"}


def test_training_applies_to_the_method_of_the_run_and_to_the_inner_method_of_a_planner() -> None:
    assert parse({"training.lr": 0.5}).method_options.lr == 0.5
    planned = parse(
        {**PLANNED, "training.local-steps": 4, "planner.stop": "plateau", "tasks.rules.validation-share": 0.1}
    )
    assert (planned.method_options.name, planned.method_options.local_steps) == ("fedga", 4)
    assert planned.planner.stop == "plateau"


def test_a_method_keeps_its_own_defaults() -> None:
    rates = {name: parse(BARE[name]).method_options.lr for name in ("fedavg", "fedrule", "fedga")}
    assert rates == {"fedavg": 0.3, "fedrule": 0.01, "fedga": 1.0}


def test_no_method_repeats_a_shared_option() -> None:
    keys = option_keys()
    for option in ("lr", "local-steps", "weighting", "inner", "stop"):
        assert [
            key.split(".")[0] for key in keys if key.endswith(f".{option}") and not key.startswith("federation.")
        ] in (["training"], ["planner"]), option


@pytest.mark.parametrize(
    ("flat", "error"),
    [
        ({"training.lrr": 1}, "unknown option 'training.lrr'; did you mean 'training.lr'?"),
        ({"training.lam": 1.0}, "unknown option 'training.lam'"),
        (
            {"planner.patience": 3},
            "option planner.* has no effect with method fedrule; remove it or set method to one of ",
        ),
        ({"training.lr": -1.0}, "'training.lr': Input should be greater than 0 (got -1.0)"),
        ({"algorithm.fedrule.lr": -1.0}, "'training.lr': Input should be greater than 0 (got -1.0)"),
        (
            {"method": "fedavg", "algorithm.fedrule.lr": 0.1},
            "option algorithm.fedrule.* has no effect with method fedavg; remove it or set method=fedrule",
        ),
        (
            {"algorithm.fedrule.lr": 0.1, "training.lr": 0.2},
            "algorithm.fedrule.lr is now training.lr, and both are set; remove algorithm.fedrule.lr",
        ),
    ],
)
def test_mistakes_are_refused_with_their_key(flat: dict[str, Scalar], error: str) -> None:
    assert refusal(flat).startswith(error)


def test_former_keys_are_read_and_noted_once(caplog: pytest.LogCaptureFixture) -> None:
    note_renamed.cache_clear()
    former: dict[str, Scalar] = {"method": "uniform", "privacy.unit": "client", "algorithm.uniform.inner": "fedprox"}
    former |= {"algorithm.fedprox.local_steps": 4}
    with caplog.at_level(logging.WARNING):
        config = parse(former)
        assert parse(former) == config
    assert (config.method_options.name, config.method_options.local_steps) == ("fedprox", 4)
    assert [record.getMessage() for record in caplog.records] == [
        "algorithm.uniform.inner is now planner.inner; the old name works until 0.3",
        "algorithm.fedprox.local_steps is now training.local-steps; the old name works until 0.3",
    ]


def test_messages_keep_the_keys_that_earlier_releases_read_and_are_read_without_a_note(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = parse({**PLANNED, "training.lr": 0.5, "run-id": "r"})
    sent = json.loads(to_json(config))
    assert (sent["algorithm.fedga.lr"], sent["algorithm.uniform.inner"]) == (0.5, "fedga")
    assert not any(key.startswith(("training.", "planner.")) for key in sent)
    note_renamed.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert from_json(to_json(config)) == from_json(json.dumps(flatten(config))) == config
    assert not caplog.records
    assert read_names(json.dumps(flatten(config))) == read_names(to_json(config)) == ("rules", "uniform", "fedga", "")


def test_stored_configurations_are_written_and_read_by_the_keys_of_this_release() -> None:
    config = parse(PLANNED)
    flat = flatten(config)
    assert (flat["planner.inner"], flat["training.lr"]) == ("fedga", 1.0)
    assert respell(json.loads(to_json(config))) == flat
    assert not {"algorithm.fedga.lr", "algorithm.uniform.inner"} & flat.keys()


def test_later_sources_win_by_either_name() -> None:
    assert overlay({"training.lr": 1.0}, {"algorithm.fedavg.lr": 2.0}) == {"algorithm.fedavg.lr": 2.0}
    assert overlay({"algorithm.fedavg.lr": 2.0}, {"training.lr": 1.0}) == {"training.lr": 1.0}
    assert overlay({"algorithm.uniform.rounds": 2}, {"algorithm.uniform.stop": "never"}, {"seed": 1}) == {
        "algorithm.uniform.rounds": 2,
        "algorithm.uniform.stop": "never",
        "seed": 1,
    }


def test_defaults_that_flower_declares_do_not_reach_another_method() -> None:
    declared = {key: value for key, value in flatten(parse({})).items() if key not in ("run-id", "resume")}
    assert parse(_named({**declared, "method": "fedavg"})).method_options.lr == 0.3
    assert parse(_named({**declared, "training.lr": 0.7})).method_options.lr == 0.7


def test_runs_of_fedloom_name_all_options_to_flower() -> None:
    config = parse({"method": "fedavg", "training.lr": 0.01, "run-id": "r"})
    assert parse(_named(flatten(config))) == config


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("federation.error-feedback", True, "federation.error-feedback"),
        ("federation.error_feedback", True, "federation.error-feedback"),
        ("federation.keep", 0.2, "federation.keep"),
        ("federation.encoding", "top-k", "federation.encoding=top-k"),
    ],
)
def test_a_removed_option_is_refused_with_its_successor(key: str, value: Scalar, named: str, tmp_path: Path) -> None:
    error = f"{named} was removed in 0.2; use federation.encoding=int8"
    assert refusal({key: value}) == error
    with pytest.raises(ConfigError, match=f"^{error}$"):
        read_overrides([f"{key}={str(value).lower()}"])
    (file := tmp_path / "config.toml").write_text(
        f"rounds = 3\n{key} = {str(value).lower() if value is True else repr(value)}\n"
    )
    with pytest.raises(ConfigError, match=f"config.toml, line 2: {error}$"):
        read_config_file(file)


def test_a_removed_option_without_effect_is_dropped() -> None:
    """Stored configurations and servers of release 0.1 name all options."""
    former: dict[str, Scalar] = {"federation.keep": 0.1, "federation.error-feedback": "auto"}
    assert parse({**former, "federation.encoding": "int8"}) == parse({"federation.encoding": "int8"})


def test_the_table_names_no_key_of_this_release_but_for_removed_values() -> None:
    assert not {*option_keys()} & {key for key, removed in REMOVED.items() if removed.refused is None}
