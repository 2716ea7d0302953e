"""FedRule with missed, lost and replayed rounds."""

import numpy as np
import pytest

from tests.support.fedrule import ZERO, total, toy
from tests.support.toys import flat, optimum


@pytest.mark.parametrize("control", ["eq3", "grad_mean"])
def test_deltas_of_all_clients_sum_to_zero_with_small_cohorts(control: str) -> None:
    federation, rng = toy(8, control=control), np.random.default_rng(0)
    names = sorted(federation.clients)
    for _ in range(12):
        federation.round(asked=rng.choice(names, size=3, replace=False).tolist())
        assert total(federation) == ZERO


def test_small_cohorts_converge_to_the_optimum() -> None:
    federation, rng = toy(6, local_steps=2), np.random.default_rng(1)
    names = sorted(federation.clients)
    for _ in range(60):
        federation.round(asked=rng.choice(names, size=3, replace=False).tolist())
    assert federation.model == pytest.approx(optimum(federation.clients), abs=1e-6)


def test_a_client_that_missed_rounds_uses_the_mean_of_its_last_round() -> None:
    federation = toy()
    federation.round()
    federation.round(asked=["client-0", "client-1"])
    federation.round(asked=["client-0", "client-1"])
    assert total(federation) == ZERO
    federation.round()
    assert total(federation) == ZERO
    assert sorted(federation.strategy.state.memory) == ["mean.4"], "unneeded means are removed"


def test_means_are_stored_while_a_client_needs_them() -> None:
    federation = toy()
    federation.round()
    federation.round(asked=["client-0", "client-1"])
    federation.round(asked=["client-0"])
    assert sorted(federation.strategy.state.memory) == ["mean.1", "mean.2", "mean.3"]
    federation.round(asked=["client-2", "client-3"])
    assert sorted(federation.strategy.state.memory) == ["mean.2", "mean.3", "mean.4"]


def test_a_reply_that_was_not_aggregated_does_not_change_delta() -> None:
    federation = toy()
    federation.round()
    before = federation.delta("client-3")
    federation.round(lost=["client-3"])
    assert federation.delta("client-3") == pytest.approx(before, abs=0)
    assert total(federation) == ZERO
    federation.round()
    assert total(federation) == ZERO


def test_a_lost_reply_of_the_first_round_does_not_change_delta() -> None:
    federation = toy()
    federation.round(lost=["client-3"])
    assert federation.delta("client-3") == ZERO
    assert total(federation) == ZERO
    federation.round()
    assert total(federation) == ZERO


def test_a_replayed_round_is_applied_once() -> None:
    once, twice = toy(), toy()
    for federation in (once, twice):
        federation.round()
        federation.round()
    first = twice.ask("client-1")
    again = twice.ask("client-1")
    np.testing.assert_array_equal(flat(first.update), flat(again.update))
    once.round()
    twice.round()
    assert twice.model.tobytes() == once.model.tobytes()
    assert total(twice) == ZERO
