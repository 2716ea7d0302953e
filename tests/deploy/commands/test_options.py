"""What a task gets where nobody names a method."""

from pathlib import Path

import pytest

from common.config.run import RunConfig
from common.errors import ConfigError
from common.options import Scalar
from deploy.cli.options import DEFAULTS, resolve


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path))


def resolved(method: str = "", sets: list[str] | None = None, **own: Scalar | None) -> RunConfig:
    return resolve(method, "markets", None, None, "", "", sets, **own)


def test_markets_get_the_scorer_and_others_counts_under_noise() -> None:
    config = resolved()
    assert (config.method, config.model, config.rounds) == ("fedavg", "default", 20)
    assert config.task_options.count_offset
    assert (config.task_options.count_privacy.unit, config.task_options.count_privacy.epsilon) == ("record", 8.0)
    assert resolved(sets=["tasks.markets.count-epsilon=2.0"]).task_options.count_privacy.epsilon == 2.0


def test_counts_do_not_go_beside_noise_on_all_that_leaves() -> None:
    config = resolved(privacy__epsilon=4.0)
    assert config.privacy.unit == "client"
    assert not config.task_options.count_offset


def test_a_method_that_is_named_comes_as_it_is() -> None:
    assert not resolved("pfgnn").task_options.count_offset
    assert resolved("pfgnn").method == "pfgnn"


@pytest.mark.parametrize(
    ("sets", "delta", "name"),
    [
        (None, 1e-6, "--delta"),
        (["privacy.epsilon=2"], None, "--set privacy.epsilon"),
        (["privacy.clip=2"], None, "clip"),
    ],
)
def test_who_speaks_of_noise_does_not_train_without_any(sets: list[str] | None, delta: float | None, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is of noise, and this run adds none: say --epsilon too"):
        resolved("fedavg", sets, privacy__delta=delta)
    config = resolved("fedavg", [*(sets or []), "privacy.unit=client"], privacy__delta=delta)
    assert config.privacy.unit == "client"
    assert resolved("fedavg", privacy__epsilon=2.0, privacy__delta=delta).privacy.unit == "client"
    assert resolved("fedavg", ["privacy.unit=none"]).privacy.unit == "none"


def test_a_task_that_tells_no_records_apart_says_so_whatever_mechanism_it_gets_unasked() -> None:
    with pytest.raises(ConfigError, match=r"needs batches of separate records.*; set privacy\.unit=client") as caught:
        resolve("", "ratings", None, None, "", "", ["privacy.unit=record"], privacy__epsilon=3.0)
    assert "mechanism" not in str(caught.value)


def test_the_help_names_what_each_task_gets() -> None:
    assert {task: resolve("", task, None, None, "", "", None).method for task in DEFAULTS} == DEFAULTS
