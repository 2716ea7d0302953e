"""Command that reproduces a run."""

from pathlib import Path

import pytest

from common.config.parse import flatten, parse
from common.options import Scalar
from deploy.federation.runs import Origin, origin_of, remember
from deploy.pages.report import command, lacks
from deploy.pages.view import RunRecord
from server.record.folder import RunDirectory


def history(origin: Origin | None = None, **config: object) -> RunRecord:
    return RunRecord(RunDirectory(Path(), "r1"), config, (), "unfinished", "", None, None, origin)


def resolved(**options: Scalar) -> dict[str, object]:
    return dict(flatten(parse({key.replace("__", "."): value for key, value in options.items()})))


SIMULATED = {"federation.min-clients": 1, "federation.wait": 1.0}
UP = Origin("up", "demo", 4)


def test_only_what_differs_from_the_defaults_is_set() -> None:
    of = resolved(method="fedrule", rounds=7, federation__deadline=33.5, federation__min_clients=4)
    assert command(history(UP, **of | {"run-id": "r1"})) == (
        "fedloom up --method fedrule --task rules --rounds 7 --seed 0 --clients 4 --patience 0"
        " --set federation.deadline=33.5"
    )


def test_early_stopping_is_named_where_the_command_would_choose_otherwise() -> None:
    stopping = resolved(federation__stop=20)
    assert command(history(UP, **stopping)).endswith("--clients 4 --patience 20 --set federation.min-clients=2")
    assert "--patience" not in command(history(UP, **resolved(privacy__unit="client")))
    assert "--patience" not in command(history(UP, **resolved(rounds=1)))
    assert "--patience" not in command(history(Origin("simulate", "demo", 0), **resolved() | SIMULATED))
    assert "--patience 5" in command(history(Origin("simulate", "demo", 0), **resolved(federation__stop=5)))


def test_words_are_quoted_for_the_shell() -> None:
    assert command(history(method="of yesterday", note="a b")) == (
        "fedloom up --method 'of yesterday' --patience 0 --set 'note=a b'"
    )


@pytest.mark.parametrize(("clients", "option"), [(0, ""), (8, " --clients 8")])
def test_a_simulation_is_reproduced_with_the_same_partition(clients: int, option: str) -> None:
    of = resolved(method="fedavg", task="rules") | SIMULATED
    expected = f"fedloom simulate --method fedavg --task rules --rounds 30 --seed 0{option}"
    assert command(history(Origin("simulate", "demo", clients), **of)) == expected


def test_a_missing_origin_is_inferred_from_the_configuration() -> None:
    assert command(history(**resolved() | SIMULATED)).startswith("fedloom simulate ")
    assert "--clients 3 " in command(history(**resolved(federation__min_clients=3))) + " "


def test_read_data_are_a_placeholder_without_a_path() -> None:
    of = resolved(catalogue="/home/me/.fedloom/simulate/r1/catalogue.json") | SIMULATED
    for origin in (None, Origin("simulate", "", 0)):
        assert command(history(origin, **of)).endswith("--seed 0 --data DATA")
        assert lacks(history(origin, **of)).startswith("DATA ")
    assert "--data demo:0-20 " in command(history(Origin("up", "demo:0-20", 4), **resolved()))
    assert not lacks(history(UP, **resolved()))


def test_a_run_of_joining_clients_is_reproduced_without_data() -> None:
    origin = Origin("submit", "", 3)
    assert command(history(origin, **resolved(federation__min_clients=3))).endswith("--seed 0 --clients 3")
    assert command(history(origin, **resolved(federation__min_clients=3))).startswith("fedloom submit --method ")
    assert not lacks(history(origin, **resolved()))
    other = resolved(catalogue="/home/me/names.json", federation__min_clients=3)
    assert command(history(origin, **other)).endswith("--catalogue CATALOGUE --clients 3")
    assert lacks(history(origin, **other)).startswith("CATALOGUE ")


@pytest.mark.parametrize(
    ("options", "further"),
    [
        ({"method": "bgtplanner", "task": "ratings"}, ""),
        ({"method": "bgtplanner", "planner.inner": "fedprox"}, " --set planner.inner=fedprox"),
        ({"method": "fedavg", "task": "ratings", "privacy.mechanism": "privunit"}, " --set privacy.mechanism=privunit"),
        ({"method": "fedavg", "task": "sessions", "model": "paper"}, " --set model=paper"),
    ],
)
def test_noise_is_requested_by_one_option(options: dict[str, object], further: str) -> None:
    of = resolved(**options, privacy__unit="client", privacy__epsilon=8.0) | SIMULATED
    method, task = options["method"], options.get("task", "rules")
    expected = f"fedloom simulate --method {method} --task {task} --rounds 30 --seed 0 --epsilon 8"
    assert command(history(**of)) == expected + further


def test_noise_by_record_is_named() -> None:
    of = resolved(privacy__unit="record", privacy__epsilon=8.0) | SIMULATED
    assert command(history(**of)).endswith("--seed 0 --set privacy.unit=record --set privacy.epsilon=8.0")


def test_an_origin_is_read_as_written(tmp_path: Path) -> None:
    assert origin_of(tmp_path / "r1") is None
    remember(tmp_path / "r1", "up", "demo", 4)
    assert origin_of(tmp_path / "r1") == UP
    remember(tmp_path / "r2", "simulate", "/home/me/homes.csv", 0)
    assert origin_of(tmp_path / "r2") == Origin("simulate", "", 0)
    assert "homes" not in (tmp_path / "r2" / "origin.json").read_text()
