"""Reservations: a release is approved once, before any work, and nothing is written until it is committed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest

from client.owner.policy import Policy
from client.privacy import budget
from client.privacy.budget import Reservation
from client.privacy.dp_sgd import DpSgdNoise
from client.privacy.ledger.database import MEMORY, PLAN
from client.privacy.ledger.ledger import Ledger
from client.tasks.rules.learner import RulesLearner
from common.arrays import norm, sub
from common.config.parse import parse, to_json
from common.errors import ConfigError, RefusedError, StateError
from common.privacy.accounts import Account, PlannedGdp
from common.privacy.mechanisms import build_account
from common.wire.messages import AssignRequest, EnrolReply, EnrolRequest, TrainRequest
from tests.support.asked import Asked, configured
from tests.support.toys import CATALOGUE

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


ROUNDS = 4

ACCOUNT = PlannedGdp(1e-5)


def planned(ledger: Ledger | None = None, **policy: float) -> Asked:
    return Asked(configured(unit="record", epsilon=4.0), Policy.model_validate(policy), ledger=ledger)


def enrolled(client: Asked, run: str) -> EnrolReply:
    return client.session.enrol(EnrolRequest(run, to_json(client.config), CATALOGUE.to_json()))


def ledger_of(client: Asked) -> Ledger:
    return client.releaser.budget.ledger(client.config.privacy)


def test_the_first_release_charges_all_and_later_ones_next_to_nothing() -> None:
    client = planned()
    total = ACCOUNT.total(4.0, 1e-5)
    assert client.enrolled.budget == total
    for number in range(1, ROUNDS + 1):
        client.train(number, total / ROUNDS)
        assert client.spent == pytest.approx(total, rel=1e-8)
        assert client.spent <= total
        assert enrolled(client, "toy").budget == pytest.approx(total * (ROUNDS - number) / ROUNDS), "as if by the round"
    plan, *releases = ledger_of(client).entries()
    assert (plan.slot.kind, plan.slot.round, plan.status) == (PLAN, 0, "released")
    assert {entry.terms.mechanism for entry in releases} == {plan.terms.mechanism}
    assert {entry.terms.noise for entry in releases} == {plan.terms.noise}
    assert plan.terms.mechanism.endswith(f"releases={ROUNDS}")
    with pytest.raises(RefusedError, match="exceeds the remaining budget"):
        client.train(ROUNDS + 1, total / ROUNDS)


def test_a_repeated_request_gets_the_same_bytes_also_after_the_last_release() -> None:
    client = planned()
    cost = client.enrolled.budget / 2
    replies = [client.train(number, cost) for number in (1, 2, 2)]
    assert norm(sub(replies[1].update, replies[2].update)) == 0
    assert norm(sub(replies[0].update, replies[1].update)) > 0
    assert len(ledger_of(client).entries()) == 3


def test_bytes_that_a_crash_lost_cost_one_of_the_releases() -> None:
    client = planned()
    cost = client.enrolled.budget / 2
    client.train(1, cost)
    ledger_of(client).acknowledge("toy", 2)  # as if never stored
    client.train(1, cost)
    with pytest.raises(RefusedError, match="exceeds the remaining budget"):
        client.train(2, cost)


def test_the_ledger_itself_refuses_more_releases_than_the_plan_has() -> None:
    client = planned()
    cost = client.enrolled.budget / 2
    request = TrainRequest(3, client.enrolled.enrolment, client.model, cost=cost)
    late = client.releaser.budget.reserve(client.config, request)
    assert late
    for number in (1, 2):
        client.train(number, cost)
    steps = client.config.method_options.steps(request.phase)
    with pytest.raises(RefusedError, match="cost exceeds the releases of the run's plan"):
        late.commit(late.dp_sgd(steps), lambda: pytest.fail("drawn"))


def test_a_run_that_ended_early_stays_charged_and_the_next_one_plans_with_the_rest() -> None:
    client = planned(max_epsilon=5.0)
    total, whole = ACCOUNT.total(4.0, 1e-5), ACCOUNT.total(5.0, 1e-5)
    client.train(1, total / ROUNDS)
    reply = enrolled(client, "second")
    assert reply.budget == pytest.approx(whole - total)
    share = total / ROUNDS
    affordable = int(reply.budget / share)
    assert 0 < affordable < ROUNDS
    for number in range(1, affordable + 1):
        client.session.train(TrainRequest(number, reply.enrolment, client.model, cost=share))
    with pytest.raises(RefusedError, match="exceeds the remaining budget"):
        client.session.train(TrainRequest(affordable + 1, reply.enrolment, client.model, cost=share))
    assert whole - share < client.spent <= whole
    claim = ledger_of(client).claim()
    assert claim.epsilon_so_far <= claim.epsilon == 5.0


def test_a_client_that_starts_again_continues_its_plan() -> None:
    ledger = Ledger(MEMORY, "record", ACCOUNT, 10.0, 1e-5)
    before = planned(ledger)
    cost = before.enrolled.budget / 2
    before.train(1, cost)
    after = planned(ledger)
    assert after.enrolled.budget == pytest.approx(cost)
    after.train(2, cost)
    first, second = (entry.terms for entry in ledger.entries() if entry.slot.kind != PLAN)
    assert first == second


@pytest.mark.parametrize("factor", [0.5, 0.999, 1.001])
def test_rounds_of_other_costs_are_refused(factor: float) -> None:
    client = planned()
    cost = client.enrolled.budget / ROUNDS
    client.train(1, cost)
    with pytest.raises(RefusedError, match="request equal costs"):
        client.train(2, cost * factor)


def test_other_steps_than_the_planned_ones_are_refused() -> None:
    client = planned()
    cost = client.enrolled.budget / ROUNDS
    client.train(1, cost)
    request = TrainRequest(2, client.enrolled.enrolment, client.model, cost=cost)
    reservation = client.releaser.budget.reserve(client.config, request)
    assert reservation
    with pytest.raises(RefusedError, match="request the same steps"):
        reservation.commit(reservation.dp_sgd(7), lambda: pytest.fail("drawn"))


def test_an_owner_who_limits_a_round_is_told_of_the_filter() -> None:
    with pytest.raises(RefusedError, match=r"max-epsilon-per-round.*set privacy\.accounting=filter"):
        planned(max_epsilon_per_round=0.5)
    client = Asked(configured(unit="record", accounting="filter"), Policy(max_epsilon_per_round=8.0))
    client.train(1, client.enrolled.budget / 50)


def test_planners_that_choose_costs_are_charged_by_the_round() -> None:
    words = {"task": "rules", "privacy.unit": "record", "planner.inner": "fedavg"}
    assert parse({**words, "method": "bgtplanner"}).privacy.accounting == "filter"
    assert parse({**words, "method": "uniform"}).privacy.accounting == "plan"
    assert parse({"task": "rules", "privacy.unit": "client"}).privacy.accounting == "auto"
    with pytest.raises(ConfigError, match=r"accounting=plan needs rounds of equal costs.*accounting=filter"):
        parse({**words, "method": "bgtplanner", "privacy.accounting": "plan"})


def test_the_noise_of_a_plan_is_that_of_its_multiplier() -> None:
    client = planned()
    request = TrainRequest(1, client.enrolled.enrolment, client.model, cost=client.enrolled.budget / ROUNDS)
    reservation = client.releaser.budget.reserve(client.config, request)
    assert reservation
    noise = reservation.noise(3, lambda: np.random.default_rng(0))
    assert noise
    assert noise.multiplier == reservation.dp_sgd(3).multiplier
