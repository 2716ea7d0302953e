"""Noise on records in runs whose rounds cost the same: one charge covers all releases, and it is never less than they cost."""

import numpy as np
import pytest

from client.owner.policy import Policy
from client.privacy.ledger.database import MEMORY, PLAN
from client.privacy.ledger.ledger import Ledger
from common.arrays import norm, sub
from common.config.parse import parse, to_json
from common.errors import ConfigError, RefusedError
from common.privacy.accounts import PlannedGdp
from common.wire.messages import EnrolReply, EnrolRequest, TrainRequest
from tests.support.asked import Asked, configured
from tests.support.toys import CATALOGUE

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
