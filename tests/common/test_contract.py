"""Terms of a run: text, hash, and the comparison of an offer with an agreement."""

from typing import Any

import pytest
from pydantic import ValidationError

from common.config.parse import parse
from common.contract import Contract, describe_beyond, side_by_side, terms_of
from common.options import Scalar

KEYS = ["SHA256:" + letter * 43 for letter in "abc"]
NOISE: dict[str, Scalar] = {"privacy.unit": "client", "privacy.epsilon": 8.0}
HELPERS: dict[str, Scalar] = {"privacy.trust": "helpers"}


def terms(helpers: list[str] | None = None, **options: Any) -> Contract:
    config = parse({"task": "rules", "method": "fedavg", "rounds": 10, **options})
    return terms_of(config, helpers or [])


EXACT, NOISED = terms(), terms(**NOISE)
MASKED = terms(KEYS[:2], **HELPERS)
NOISED_SUMS = terms(KEYS[:2], **HELPERS, **NOISE)


def test_the_terms_of_a_run_state_all_that_its_clients_do() -> None:
    assert EXACT.plaintext == ("metrics", "number of records", "updates")
    assert (EXACT.tasks, EXACT.methods, EXACT.rounds, EXACT.trust) == (("rules",), ("fedavg",), 10, ("local",))
    assert (EXACT.epsilon, NOISED.epsilon, NOISED.delta, NOISED.plaintext) == (None, 8.0, 1e-5, ())
    assert (MASKED.trust, MASKED.helpers, MASKED.min_sum, MASKED.plaintext) == (("helpers",), tuple(KEYS[:2]), 5, ())
    planned = terms(method="bgtplanner", **NOISE)
    assert planned.methods[0] == "bgtplanner"
    assert len(planned.methods) == 2
    closed = terms(method="ridge")
    assert (closed.local_steps, "statistics" in closed.plaintext, "updates" in closed.plaintext) == (0, True, False)
    named = terms(catalogue="federated", task="sessions")
    assert "names" in named.plaintext


def test_a_run_that_has_not_started_may_rely_on_helpers_or_not() -> None:
    config = parse({"task": "rules", "method": "fedavg"})
    found = terms_of(config, is_started=False)
    assert (found.trust, found.min_sum, found.plaintext) == (("helpers", "local"), 1, EXACT.plaintext)
    for started in (config.privacy.model_copy(update={"trust": trust}) for trust in ("helpers", "local")):
        assert not terms_of(config.model_copy(update={"privacy": started}), KEYS[:2]).beyond(found)


@pytest.mark.parametrize(
    ("agreed", "offered"),
    [
        (EXACT, NOISED),
        (EXACT, MASKED),
        (EXACT, NOISED_SUMS),
        (EXACT, terms(rounds=3)),
        (NOISED, terms(**{**NOISE, "privacy.epsilon": 2.0})),
        (NOISED, terms(**{**NOISE, "privacy.delta": 1e-6})),
        (MASKED, terms(KEYS, **HELPERS)),
        (MASKED, terms(KEYS[:2], **HELPERS, **{"secure-sums.min-sum": 9})),
        (MASKED, NOISED_SUMS),
    ],
)
def test_less_is_within_the_agreement(agreed: Contract, offered: Contract) -> None:
    assert offered.beyond(agreed) == {}


@pytest.mark.parametrize(
    ("agreed", "offered", "labels"),
    [
        (NOISED, EXACT, {"privacy", "plaintext"}),
        (NOISED, terms(**{**NOISE, "privacy.epsilon": 8.5}), {"privacy"}),
        (NOISED, terms(**{**NOISE, "privacy.delta": 1e-4}), {"privacy"}),
        (NOISED, NOISED_SUMS, {"trust"}),
        (MASKED, EXACT, {"trust", "helpers", "sums", "plaintext"}),
        (MASKED, NOISED, {"trust", "helpers", "sums"}),
        (MASKED, terms(KEYS[1:], **HELPERS), {"helpers"}),
        (MASKED, terms(KEYS[:2], **HELPERS, **{"secure-sums.min-sum": 2}), {"sums"}),
        (EXACT, terms(rounds=11), {"length"}),
        (EXACT, terms(**{"training.local-steps": 900}), {"length"}),
        (EXACT, terms(method="fedrule"), {"method"}),
        (EXACT, terms(task="sessions"), {"task"}),
        (EXACT, terms(catalogue="federated", task="sessions"), {"task", "plaintext"}),
        (terms(**{**NOISE, "privacy.unit": "record"}), NOISED, {"privacy"}),
    ],
)
def test_more_or_less_protection_is_beyond_it(agreed: Contract, offered: Contract, labels: set[str]) -> None:
    assert {*offered.beyond(agreed)} == labels


def test_both_texts_stand_side_by_side() -> None:
    lines = list(side_by_side(NOISED, EXACT))
    assert NOISED.short_hash in lines[0]
    assert EXACT.short_hash in lines[0]
    [privacy] = [line for line in lines if "privacy" in line]
    assert privacy.startswith("> privacy     noise on everything that a client sends: ε = 8, δ = 1e-05 (gaussian)")
    assert privacy.endswith(" | no noise")
    assert [line[0] for line in lines if "task" in line] == [" "]
    assert describe_beyond(NOISED, EXACT) == (
        "privacy: agreed 'noise on everything that a client sends: ε = 8, δ = 1e-05 (gaussian)', offered 'no noise';"
        " plaintext: agreed 'nothing', offered 'metrics, number of records, updates'"
    )


def test_the_hash_is_that_of_the_canonical_text() -> None:
    again = Contract.model_validate_json(NOISED.canonical())
    assert again == NOISED
    assert again.hash == NOISED.hash
    assert len({one.hash for one in (EXACT, NOISED, MASKED, NOISED_SUMS, terms(rounds=3))}) == 5


@pytest.mark.parametrize(
    "changed", [{"epsilon": 1.0}, {"helpers": ["SHA256:x"]}, {"plaintext": ["all"]}, {"tasks": ["../x"]}, {"rounds": 0}]
)
def test_malformed_terms_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Contract.model_validate({**EXACT.model_dump(), **changed})
