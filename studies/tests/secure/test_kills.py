"""Random kills in runs with secure sums: no second sum, no unpaid upload, at most a round for each start of a helper."""

import secrets
from collections import Counter
from collections.abc import Callable

import pytest

from client.privacy.ledger.ledger import Ledger
from client.secure.helper.helper_service import HelperState
from studies.secure.kill_federation import HELPERS
from studies.secure.kills import KILLS_A_RUN, KINDS, ROUNDS, RUNS, Plan, measure, plans

RUNS_HERE = 5


@pytest.mark.parametrize("plan", plans(RUNS_HERE), ids=lambda plan: f"seed-{plan.seed}")
def test_kills_open_no_second_sum_and_lose_no_entry(plan: Plan) -> None:
    outcome = measure(plan)
    assert sum(outcome.kills.values()) == KILLS_A_RUN
    assert outcome.rounds == ROUNDS
    assert outcome.lost <= outcome.kills.get("helper", 0)
    assert (ROUNDS - outcome.lost) * HELPERS <= outcome.sums <= ROUNDS * HELPERS
    assert (outcome.second_sums, outcome.unpaid) == (0, 0)
    assert (outcome.uploads > 0) is plan.has_noise
    assert outcome.has_same_model or not outcome.is_comparable


def test_a_hundred_kills_strike_each_kind_of_process() -> None:
    available = dict.fromkeys(KINDS, 1_000)
    kills = sum((Counter({k: len(m) for k, m in plan.moments(available).items()}) for plan in plans()), Counter[str]())
    assert kills.total() == RUNS * KILLS_A_RUN == 100
    assert min(kills[kind] for kind in KINDS) >= 20


def test_a_helper_with_two_answers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is drawn anew for a request that the killed server repeats."""
    monkeypatch.setattr(HelperState, "enter", lambda *_: secrets.token_bytes(32))
    assert any(measure(Plan(seed, has_noise=True, has_lost_nodes=False)).second_sums for seed in (1, 5, 9))


def test_an_upload_without_an_entry_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def release(ledger: Ledger, slot: object, terms: object, make: Callable[[], bytes], limits: object) -> bytes:
        return make()

    monkeypatch.setattr(Ledger, "release", release)
    outcome = measure(Plan(1, has_noise=True, has_lost_nodes=False))
    assert outcome.unpaid == outcome.uploads > 0
