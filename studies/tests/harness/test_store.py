"""A trial is computed once; an interrupted study continues from the cache, a fresh clone from the stored results."""

from pathlib import Path

import pytest

from studies.harness.results import Results
from studies.harness.row import RowKey, Trial
from studies.harness.store import Store

KEY = RowKey("set", "default", "row")


def never() -> Trial:
    pytest.fail("computed twice")


def test_a_trial_is_computed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Trial({"mse": 0.5}, {10: {"mse": 0.7}}, {"a": {"mse": 0.4}}, config={"seed": 3, "rounds": 10})
    store = Store(tmp_path / "cache", Results(), {"made": "today"})
    assert store.get_or_compute(KEY, 3, lambda: made, "Row").curve == {10: {"mse": 0.7}}
    assert "set-default-row-3: 0 s mse 0.5000" in capsys.readouterr().out
    assert store.get_or_compute(KEY, 3, never).metrics == {"mse": 0.5}
    again = Store(tmp_path / "cache", Results())
    assert again.get_or_compute(KEY, 3, never).clients == {"a": {"mse": 0.4}}
    about = store.results.rows[KEY].about
    assert (about.title, about.config, about.made) == ("Row", {"rounds": 10}, "today")
    assert about.seconds.keys() == {"3"}


def test_stored_results_need_no_cache(tmp_path: Path) -> None:
    store = Store(tmp_path / "a", Results())
    store.get_or_compute(KEY, 0, lambda: Trial({"mse": 0.5}), "Row")
    store.results.save(tmp_path / "results")
    clone = Store(tmp_path / "b", Results.load(tmp_path / "results"))
    assert clone.get_or_compute(KEY, 0, never).metrics == {"mse": 0.5}


def test_a_failed_run_is_recorded_and_has_no_numbers(tmp_path: Path) -> None:
    store = Store(tmp_path, Results())
    store.get_or_compute(KEY, 0, lambda: Trial(failure="diverged"), "Row")
    assert store.results.rows[KEY].trials == {}
    assert store.get_or_compute(KEY, 0, never).failure == "diverged"


def test_an_exception_is_not_cached(tmp_path: Path) -> None:
    store = Store(tmp_path, Results())
    with pytest.raises(ZeroDivisionError):
        store.get_or_compute(KEY, 0, lambda: Trial({"mse": 1 / 0}))
    assert store.get_or_compute(KEY, 0, lambda: Trial({"mse": 3.0})).metrics == {"mse": 3.0}


def test_tuning_trials_stay_in_the_cache(tmp_path: Path) -> None:
    store = Store(tmp_path, Results())
    store.tuning_trial(KEY, "lr 0.1", lambda: Trial(curve={1: {"loss": 0.3}}))
    assert store.tuning_trial(KEY, "lr 0.1", never).curve == {1: {"loss": 0.3}}
    assert store.results.rows == {}
