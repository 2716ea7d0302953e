"""Releases of a client in runs with noise, whatever the server requests."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.owner.policy import Policy
from common.arrays import norm, sub
from common.config.parse import parse, to_json
from common.errors import ConfigError, RefusedError
from common.privacy.accounts import gdp_of
from common.privacy.mechanisms import build_account
from common.wire.messages import EnrolRequest, EvaluateRequest, TrainRequest
from tests.support.asked import Asked, configured
from tests.support.toys import CATALOGUE

RHO = gdp_of(10, 1e-5)


@pytest.mark.parametrize(
    ("share", "unit", "shared"),
    [
        ("without_noise", "none", True),
        ("without_noise", "client", False),
        ("always", "none", True),
        ("always", "client", True),
        ("never", "none", False),
        ("never", "client", False),
    ],
)
def test_an_enrolment_states_whether_metrics_will_be_sent_and_they_are(share: str, unit: str, shared: bool) -> None:
    client = Asked(configured(unit=unit), Policy.model_validate({"share-metrics": share}))
    metrics = client.session.evaluate(EvaluateRequest(1, client.enrolled.enrolment, client.model, "test")).metrics
    assert client.enrolled.shares_metrics == shared == bool(metrics)


def test_without_noise_everything_passes_as_it_is() -> None:
    config = parse({"method": "fedavg", "run-id": "toy"})
    client = Asked(config)
    reply = client.train(1, 0.0)
    assert (client.enrolled.examples, client.enrolled.ledger, reply.examples) == (3, "", 3)
    assert reply.loss > 0
    assert client.session.evaluate(EvaluateRequest(1, client.enrolled.enrolment, client.model, "test")).metrics


def test_runs_with_noise_send_no_numbers_of_records_losses_and_metrics() -> None:
    client = Asked(configured())
    reply = client.train(1, 0.1)
    assert (client.enrolled.examples, reply.examples, reply.loss) == (1, 1, 0.0)
    assert (client.enrolled.budget, client.enrolled.ledger[-3:]) == (pytest.approx(RHO), ":0:")
    measured = client.session.evaluate(EvaluateRequest(1, client.enrolled.enrolment, client.model, "test"))
    assert (measured.metrics, measured.weights) == ({}, {})
    consenting = Asked(configured(), Policy(share_metrics="always"))
    request = EvaluateRequest(1, consenting.enrolled.enrolment, consenting.model, "test")
    assert consenting.session.evaluate(request).metrics


@pytest.mark.parametrize("method", ["fedavg", "fedrule"])
def test_with_next_to_no_noise_a_reply_is_the_plain_one(method: str) -> None:
    """`fedrule` uploads its gradient in the same vector."""
    plain = Asked(parse({"method": method, "run-id": "toy"})).train(1, 0.0)
    noisy = Asked(configured(method, epsilon=1e6, clip=10.0), seed=3).train(1, 5e5)
    assert plain.gradient.keys() == noisy.gradient.keys()
    size = sum(a.size for a in (*plain.update.values(), *plain.gradient.values()))
    away = norm(sub(plain.update, noisy.update)) ** 2 + norm(sub(plain.gradient, noisy.gradient)) ** 2
    assert away == pytest.approx(size * (20.0 / math.sqrt(1e6)) ** 2, rel=5 * math.sqrt(2 / size)), "σ² a number"


def test_the_whole_reply_is_one_clipped_vector() -> None:
    """Without noise its norm would be C; σ = 2C/√(2ρ) on each of its n numbers adds nσ² to the square."""
    clip, rho = 0.05, 1.0
    reply = Asked(configured("fedrule", clip=clip, normalise=True), seed=5).train(1, rho)
    size = sum(a.size for a in (*reply.update.values(), *reply.gradient.values()))
    square = norm(reply.update) ** 2 + norm(reply.gradient) ** 2
    sigma = 2 * clip / math.sqrt(2 * rho)
    assert square == pytest.approx(clip**2 + size * sigma**2, rel=5 * math.sqrt(2 / size))


def test_a_round_asked_for_again_is_the_same_bytes_and_costs_nothing() -> None:
    client = Asked(configured())
    first, again = client.train(1, RHO / 2), client.train(1, RHO / 2)
    assert norm(sub(first.update, again.update)) == 0
    assert client.spent == pytest.approx(RHO / 2)
    with pytest.raises(RefusedError, match="on other terms"):
        client.train(1, RHO / 4)
    with pytest.raises(RefusedError, match="on other terms"):
        client.train(1, RHO / 2, clip=0.5)


def test_an_old_round_is_not_released_beyond_the_budget() -> None:
    """Its bytes are gone once a later round was asked, so it would be paid anew."""
    client = Asked(configured())
    client.train(1, RHO / 2)
    client.train(2, RHO / 2)
    with pytest.raises(RefusedError, match="exceeds the remaining budget"):
        client.train(1, RHO / 2)
    assert client.train(2, RHO / 2).round == 2, "the last one is still cached"


def test_a_hundred_times_a_hundredth_fits() -> None:
    client = Asked(configured(mechanism="laplace"))
    for number in range(1, 101):
        client.train(number, 10 / 100)
    assert client.spent <= 10
    with pytest.raises(RefusedError, match="exceeds the remaining budget"):
        client.train(101, 1e-3)


@pytest.mark.parametrize("cost", [0.0, -1.0, math.nan, math.inf])
def test_a_cost_that_is_none_is_refused(cost: float) -> None:
    client = Asked(configured())
    with pytest.raises(RefusedError, match="requested cost"):
        client.train(1, cost)
    assert client.spent == 0


@pytest.mark.parametrize("factor", [0.0, -1.0, 1.5, math.inf, math.nan])
def test_a_clip_may_only_be_lowered(factor: float) -> None:
    with pytest.raises(RefusedError, match="can only be lowered"):
        Asked(configured()).train(1, 0.1, clip=factor)


@pytest.mark.parametrize("unit", ["client", "record"])
def test_a_clip_under_which_rounded_gradients_would_pass_is_refused(unit: str) -> None:
    client = Asked(configured(unit=unit))
    with pytest.raises(RefusedError, match="requested clip norm 1e-34 is below the minimum 1e-06"):
        client.train(1, 0.1, clip=1e-34)
    assert client.spent == 0
    with pytest.raises(ConfigError, match="clip"):
        configured(unit=unit, clip=1e-34)


ASKED = st.tuples(
    st.integers(-1, 6),
    st.sampled_from([0.01, 0.3, 1.0, 4.0, 1e9, 1e-300, 0.0, -1.0, math.nan, math.inf]),
    st.sampled_from([1.0, 1.0, 0.5, 0.0, math.inf]),
)


@settings(deadline=None, max_examples=25)
@given(st.lists(ASKED, max_size=14), st.sampled_from(["gaussian", "laplace", "privunit"]))
def test_no_requests_of_a_server_spend_more_than_the_budget(asked: list[tuple[int, float, float]], name: str) -> None:
    client = Asked(configured(mechanism=name, epsilon=2.0), Policy(max_epsilon=3.0))
    total = build_account(client.config.privacy).total(2.0, 1e-5)
    answered: dict[tuple[int, float, float], bytes] = {}
    for number, cost, clip in asked:
        try:
            reply = client.train(number, cost, clip=clip)
        except RefusedError:
            continue
        content = b"".join(a.tobytes() for _, a in sorted(reply.update.items()))
        answered.setdefault((number, cost, clip), content)
        assert client.spent <= total
    assert sum(cost for _, cost, _ in answered) <= total * (1 + 1e-8), "what was seen was paid for"


def test_the_owner_has_the_last_word() -> None:
    with pytest.raises(RefusedError, match="requires differential privacy"):
        Asked(parse({"method": "fedavg", "run-id": "toy"}), Policy(require_noise=True))
    with pytest.raises(RefusedError, match=r"does not allow privacy\.unit=client"):
        Asked(configured(), Policy(units=("record",)))
    with pytest.raises(RefusedError, match=r"privacy\.delta = 0\.001 exceeds the policy's delta = 1e-05"):
        Asked(configured(delta=1e-3), Policy(max_epsilon=1.0))
    modest = Asked(configured(), Policy(max_epsilon=1.0))
    assert modest.enrolled.budget == pytest.approx(gdp_of(1.0, 1e-5)), "less than the run would spend"
    with pytest.raises(RefusedError, match="this client's limit is"):
        Asked(configured(), Policy(max_epsilon_per_round=0.5)).train(1, RHO)


def test_a_second_run_finds_what_the_first_left() -> None:
    client = Asked(configured(), Policy(max_epsilon=10.0))
    client.train(1, RHO * 0.75)
    other = replace(EnrolRequest("toy", to_json(client.config), CATALOGUE.to_json()), run="other")
    enrolled = client.session.enrol(other)
    assert enrolled.budget == pytest.approx(RHO / 4)
    with pytest.raises(RefusedError, match="exceeds the remaining budget"):
        client.session.train(TrainRequest(1, enrolled.enrolment, client.model, cost=RHO / 2))
    client.session.train(TrainRequest(1, enrolled.enrolment, client.model, cost=enrolled.budget))
    with pytest.raises(RefusedError, match="budget of this client's data is exhausted"):
        client.session.enrol(replace(other, run="third"))


def test_noise_on_records_is_charged_by_the_round() -> None:
    config = configured(unit="record", epsilon=4.0, sample=0.5, accounting="filter")
    client = Asked(config)
    account = build_account(config.privacy)
    reply = client.train(1, client.enrolled.budget / 4)
    assert client.spent == pytest.approx(account.total(4.0, 1e-5) / 4)
    assert norm(sub(reply.update, client.train(1, client.enrolled.budget / 4).update)) == 0
    assert norm(sub(reply.update, Asked(config, seed=9).train(1, client.enrolled.budget / 4).update)) > 0
