"""What a run claims of privacy."""

import math

import pytest

from common.config.parse import parse
from common.options import Scalar
from common.privacy.accounts import PlannedGdp, gdp_of
from common.privacy.claims import COPIES, PROPERTIES, UNCOVERED
from server.record.privacy_statement import UNPROTECTED, statement
from server.record.result import Privacy
from tests.support.plugins import install, noiseless


def said(spent: dict[str, float], sharing: int = 0, **options: Scalar) -> Privacy:
    privacy = {f"privacy.{key}": value for key, value in options.items()}
    return statement(parse({"method": "fedavg", "task": "rules", **privacy}), spent, sharing)


def test_without_noise_nothing_is_claimed() -> None:
    assert said({}) == UNPROTECTED
    assert UNPROTECTED.epsilon is None


def test_properties_are_named_where_they_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PROPERTIES in statement(parse({"method": "fedstl", "task": "traffic"}), {}, 0).uncovered
    install(monkeypatch, noiseless())
    inside = parse({"method": "noiseless", "planner.inner": "fedstl", "task": "traffic"})
    assert PROPERTIES in statement(inside, {}, 0).uncovered
    assert PROPERTIES not in UNPROTECTED.uncovered


def test_the_guarantee_is_the_budget_and_the_spent_amount_is_listed_too() -> None:
    half = said({"ann": gdp_of(4.0, 1e-5), "bob": 0.0}, unit="client", epsilon=8.0)
    assert (half.epsilon, half.delta, half.account, half.neighbours) == (8.0, 1e-5, "gdp", "replace-one")
    assert half.epsilon_spent_max == pytest.approx(4.0)
    assert (
        half.mechanism == "Gaussian noise on all values that a client sends, as one vector of Euclidean norm at most 1"
    )
    assert said({}, unit="client").epsilon_spent_max == 0.0


def test_requests_beyond_the_budget_were_never_spent() -> None:
    assert said({"ann": 9.0}, unit="client", mechanism="laplace", epsilon=8.0).epsilon_spent_max == 8.0


def test_pure_mechanisms_have_no_delta() -> None:
    pure = said({"ann": 2.5}, unit="client", mechanism="laplace", clip=0.5)
    assert (pure.delta, pure.account, pure.epsilon_spent_max) == (None, "pure", 2.5)
    assert pure.mechanism.endswith("absolute sum at most 0.5")


def test_records_are_protected_in_content_and_not_in_number() -> None:
    planned = said({"ann": PlannedGdp(1e-5).total(4.0, 1e-5)}, unit="record", epsilon=8.0)
    assert (planned.account, planned.epsilon_spent_max) == ("prv-1e-05", pytest.approx(4.0))
    records = said({"ann": 0.5}, unit="record", epsilon=8.0, accounting="filter")
    order = int(records.account.removeprefix("rdp-"))
    assert records.epsilon_spent_max == pytest.approx(
        0.5 + math.log(1e5 / order) / (order - 1) + math.log1p(-1 / order)
    )
    assert records.neighbours == "add-or-remove-one"
    assert records.uncovered[0] == "size: how many records a client has"


def test_every_open_channel_is_named_and_metrics_only_where_they_left() -> None:
    shared = said({}, sharing=3, unit="client").uncovered
    assert shared[0] == "metrics: 3 clients send theirs in plaintext, as their policies allow"
    assert set(UNCOVERED) < set(shared)
    assert said({}, unit="client").uncovered == shared[1:]


def test_item_ids_plaintext_are_said_to_be_and_are_not_covered() -> None:
    paper = {"method": "fedavg", "task": "ratings", "model": "paper", "privacy.unit": "client"}
    shown = statement(parse({**paper, "tasks.ratings.items": "paper"}), {}, 0)
    hidden = statement(parse(paper), {}, 0)
    assert shown.neighbours == "replace-one-same-items"
    assert shown.mechanism.startswith(
        "Gaussian noise on all numbers that a client sends, apart from item ids in plaintext"
    )
    assert shown.uncovered[0].startswith("item ids: which products a client rated is sent in plaintext")
    assert shown.uncovered[1:] == hidden.uncovered
    assert hidden.mechanism.startswith("Gaussian noise on all values that a client sends, as one vector")


@pytest.mark.parametrize("privacy", [{"unit": "client"}, {"unit": "client", "trust": "helpers"}, {"unit": "record"}])
def test_weights_by_records_are_uniform_under_noise_and_said_to_be(privacy: dict[str, Scalar]) -> None:
    noise = {f"privacy.{key}": value for key, value in privacy.items()}
    weighted = parse(
        {"method": "fedavg", "task": "sessions", "model": "paper", "training.weighting": "examples", **noise}
    )
    assert statement(weighted, {}, 0).weights.startswith("uniform: weighting=examples needs numbers of records")
    assert statement(parse({"method": "fedavg", "task": "sessions", "model": "paper", **noise}), {}, 0).weights == ""


def test_weights_by_records_stand_without_noise() -> None:
    weighted = {"method": "fedavg", "task": "rules", "training.weighting": "examples"}
    assert statement(parse(weighted), {}, 0) == UNPROTECTED
    assert statement(parse({**weighted, "privacy.trust": "helpers"}), {}, 0).weights == ""


def test_secure_sums_state_whom_they_rely_on() -> None:
    noised = parse({"method": "fedavg", "task": "rules", "privacy.unit": "client", "privacy.trust": "helpers"})
    found = statement(noised, {}, 0, ("ann", "bob"))
    assert found.mechanism.startswith("discrete Gaussian noise of every helper on sums over clients of all values")
    assert "if at least one of ann, bob followed the protocol" in found.guarantee
    assert not any("floating point" in channel for channel in found.uncovered)
    masked = statement(parse({"method": "fedavg", "task": "rules", "privacy.trust": "helpers"}), {}, 0, ("ann", "bob"))
    assert (masked.epsilon, masked.uncovered[0]) == (None, "sums of model updates")
    assert "what sums reveal is not bounded" in masked.guarantee
    assert COPIES not in masked.uncovered, "nothing is charged"
    assert COPIES in found.uncovered
    assert said({}, unit="client").guarantee == ""
