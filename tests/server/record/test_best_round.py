"""Best evaluated round, and the end of a run without further gains."""

import pytest

from server.record.model_choice import BestRound


def run(rounds: BestRound, values: list[float], metric: str = "loss") -> list[bool]:
    return [rounds.compare(number, {metric: value}, "validation") for number, value in enumerate(values, 1)]


@pytest.mark.parametrize(("higher", "values", "best"), [(False, [3, 1, 2], 2), (True, [3, 1, 4, 4], 3)])
def test_the_best_round_is_the_first_with_the_best_value(higher: bool, values: list[float], best: int) -> None:
    rounds = BestRound("loss", higher)
    assert run(rounds, values)[best - 1]
    assert rounds.best is not None
    assert (rounds.best.round, rounds.best.metrics, rounds.best.split) == (
        best,
        {"loss": values[best - 1]},
        "validation",
    )


def test_test_data_and_rounds_without_the_metric_never_select() -> None:
    rounds = BestRound("loss", higher_is_better=False, stop=1)
    assert not rounds.compare(1, {"loss": 1.0}, "test")
    assert not rounds.compare(2, {"auc": 1.0}, "validation")
    assert (rounds.best, rounds.reason_to_stop()) == (None, "")


def test_a_run_without_gain_for_so_many_rounds_stops() -> None:
    rounds = BestRound("loss", higher_is_better=False, stop=2)
    run(rounds, [3, 2, 2])
    assert rounds.reason_to_stop() == ""
    rounds.compare(4, {"loss": 2.5}, "validation")
    assert rounds.reason_to_stop() == (
        "loss on validation data has not improved for 2 rounds, since round 2 (--patience 2)"
    )


def test_small_gains_do_not_count() -> None:
    rounds = BestRound("hr20", higher_is_better=True, stop=2, min_delta=0.1)
    run(rounds, [0.5, 0.55, 0.59], "hr20")
    assert rounds.reason_to_stop().startswith("hr20 on validation data has not improved for 2 rounds, since round 1")
    assert rounds.best is not None
    assert rounds.best.round == 3, "the best model is kept, however small its gain"
    run(BestRound("hr20", higher_is_better=True), [0.1] * 100, "hr20")


def test_without_a_limit_a_run_never_stops() -> None:
    rounds = BestRound("loss", higher_is_better=False)
    run(rounds, [1.0] * 100)
    assert rounds.reason_to_stop() == ""


def test_the_selection_counts_in_place_of_the_mean() -> None:
    rounds = BestRound("loss", higher_is_better=False)
    rounds.compare(1, {"loss": 0.5}, "validation", 0.5)
    assert not rounds.compare(2, {"loss": 1e-9}, "validation", 0.6)
    assert rounds.compare(3, {"loss": 9.0}, "validation", 0.4)
    assert rounds.best is not None
    assert (rounds.best.round, rounds.best.metrics) == (3, {"loss": 9.0})
