"""Reservations: a release is approved once, before any work, and nothing is written until it is committed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

import pytest

from client.owner.policy import Policy
from client.privacy import budget
from client.privacy.budget import Reservation
from client.privacy.dp_sgd import DpSgdNoise
from client.tasks.rules.learner import RulesLearner
from common.errors import RefusedError, StateError
from common.privacy.accounts import Account
from common.privacy.mechanisms import build_account
from common.wire.messages import AssignRequest, TrainRequest
from tests.support.asked import Asked, configured

UNITS = ("client", "record")


@contextmanager
def counted_accounts() -> Iterator[list[Account]]:
    """Every account that is built meanwhile."""
    built: list[Account] = []

    def count(options: object) -> Account:
        built.append(build_account(options))  # type: ignore[arg-type]  # a stand-in with the same argument
        return built[-1]

    with patch.object(budget, "build_account", count):
        yield built


def request_of(client: Asked, number: int = 1, cost: float = 0.1) -> TrainRequest:
    return TrainRequest(number, client.enrolled.enrolment, client.model, cost=cost)


def reserved(client: Asked, number: int = 1, cost: float = 0.1) -> Reservation:
    reservation = client.releaser.budget.reserve(client.config, request_of(client, number, cost))
    assert reservation
    return reservation


@pytest.mark.parametrize("unit", UNITS)
def test_a_round_builds_its_account_at_most_twice(unit: str) -> None:
    client = Asked(configured(unit=unit))
    with counted_accounts() as accounts:
        client.train(1, 0.1)
    assert 0 < len(accounts) <= 2
    with counted_accounts() as accounts:
        client.train(1, 0.1)
    assert len(accounts) <= 2, "nor when it is repeated"


def test_a_run_without_noise_builds_none() -> None:
    client = Asked(configured(unit="none"))
    with counted_accounts() as accounts:
        client.train(1, 0.0)
    assert accounts == []


@pytest.mark.parametrize(("unit", "accounting"), [("client", "auto"), ("record", "filter"), ("record", "plan")])
def test_the_approvals_of_a_round_take_at_most_ten_milliseconds(unit: str, accounting: str) -> None:
    """Reservation, noise of local steps, charge and replay cache; the fastest of some rounds, without the training."""
    client, seconds = Asked(configured(unit=unit, accounting=accounting, epsilon=40.0)), []
    for number in range(1, 9):
        start = time.perf_counter()
        reservation = reserved(client, number, 1.0 if accounting == "plan" else 1.0 + 0.1 * number)
        reservation.noise(3, client.releaser.generator)
        mechanism = reservation.dp_sgd(3) if unit == "record" else reservation.mechanism(100)
        reservation.commit(mechanism, lambda: b"noise")
        reservation.acknowledge()
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.01


def test_a_reservation_costs_nothing_and_is_not_written() -> None:
    client = Asked(configured())
    for _ in range(3):
        reserved(client)
    ledger = client.releaser.budget.ledger(client.config.privacy)
    assert (client.spent, ledger.entries()) == (0, [])


def test_a_reservation_is_used_once() -> None:
    client = Asked(configured())
    reservation = reserved(client)
    assert reservation.commit(reservation.mechanism(3), lambda: b"noise") == b"noise"
    with pytest.raises(StateError, match="was used before; reserve again"):
        reservation.commit(reservation.mechanism(3), lambda: b"other noise")
    assert client.spent == pytest.approx(0.1)


def test_a_reservation_that_was_refused_is_used_too() -> None:
    client = Asked(configured())
    total = client.enrolled.budget
    first, second = reserved(client, 1, 0.6 * total), reserved(client, 2, 0.6 * total)
    first.commit(first.mechanism(3), lambda: b"noise")
    with pytest.raises(RefusedError, match="cost exceeds the run's remaining budget"):
        second.commit(second.mechanism(3), lambda: b"noise")
    with pytest.raises(StateError, match="was used before"):
        second.commit(second.mechanism(3), lambda: b"noise")
    assert client.spent == pytest.approx(0.6 * total)


def test_a_repeated_slot_gets_the_cached_bytes_for_nothing() -> None:
    client = Asked(configured())
    for content in (b"noise", b"other noise"):
        reservation = reserved(client)
        assert reservation.commit(reservation.mechanism(3), partial(bytes, content)) == b"noise"
    assert client.spent == pytest.approx(0.1)


def test_noise_of_local_steps_belongs_to_unit_record() -> None:
    assert reserved(Asked(configured())).noise(3, lambda: pytest.fail("drawn")) is None
    client = Asked(configured(unit="record", clip=0.5))
    noise = reserved(client).noise(3, client.releaser.generator)
    assert isinstance(noise, DpSgdNoise)
    assert (noise.clip, noise.sample) == (0.5, client.config.privacy.sample)
    assert noise.multiplier == reserved(client).dp_sgd(3).multiplier


def test_what_is_refused_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Asked(configured(), Policy(max_epsilon_per_round=0.5))
    monkeypatch.setattr(RulesLearner, "batch", lambda *about: pytest.fail("trained"))
    with pytest.raises(RefusedError, match="this client's limit is"):
        client.train(1, 1.0)
    with pytest.raises(RefusedError, match="this client's limit is"):
        client.session.assign(AssignRequest(1, client.enrolled.enrolment, {}, "loss", cost=1.0))


def test_a_mechanism_that_costs_more_than_reserved_is_refused() -> None:
    client = Asked(configured())
    cheap, dear = reserved(client, 1, 0.1), reserved(client, 2, 0.2)
    with pytest.raises(RefusedError, match="exceeds the reserved cost"):
        cheap.commit(dear.mechanism(3), lambda: pytest.fail("drawn"))
    assert client.spent == 0
