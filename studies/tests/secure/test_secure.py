"""Cost of secure sums: its cases compare every sum, and its page follows from the stored results."""

import json
from pathlib import Path

import numpy as np
import pytest

from common.secure.norms import proof_size
from studies.secure import cost
from studies.secure.__main__ import PAGE, RESULTS
from studies.secure.cost import CASES, Case, Federation, measure
from studies.secure.page import LIMITS, claims, kill_claims, round_claims, write_page
from studies.secure.rounds import TARGET, count_numbers

ROOT = Path(__file__).parents[3]


def test_a_small_sum_is_measured() -> None:
    found = measure(Case(8, 300, 0.1))
    assert found["bytes"] == 8 * 300 + 384 + proof_size(300, 2)
    assert min(found.values()) >= 0
    assert Case(64, 300, 0.3).survivors == 45


def test_a_wrong_sum_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Federation.open
    monkeypatch.setattr(cost.Federation, "open", lambda self: opened(self) + np.eye(1, 300, dtype=np.int64)[0])
    with pytest.raises(AssertionError, match="differs from integers and noise"):
        measure(Case(8, 300, 0.1))


def test_the_page_follows_from_the_stored_results() -> None:
    stored = json.loads((ROOT / RESULTS).read_text())
    rows = [Case(row["clients"], row["numbers"], row["lost"]) for row in stored["rows"]]
    assert rows == list(CASES)
    assert {(case.clients, case.numbers, case.lost) for case in CASES} == LIMITS.keys()
    assert write_page(stored) == (ROOT / PAGE).read_text("utf-8")


def test_a_row_beyond_its_limit_is_named() -> None:
    limits = LIMITS[8, 10**5, 0.1]
    names = ("quantise_ms", "mask_ms", "server_s", "helper_s", "noise_s")
    row = {
        "clients": 8,
        "numbers": 10**5,
        "lost": 0.1,
        "bytes": 900_000,
        "prove_ms": 1.0,
        **dict(zip(names, limits, strict=True)),
    }
    assert all(claim.holds for claim in claims([row], {"100000": 120.0}))
    slow = claims([{**row, "mask_ms": 1.6, "bytes": 1_300_000}], {"100000": 121.0})
    assert [claim.holds for claim in slow] == [True, False, True, True, True, False, True, False]


def test_a_slow_round_with_helpers_is_stated() -> None:
    [quick] = round_claims({"without": [1.0, 2.0, 9.0], "with": [3.0, 2.9, 9.0]}, 9_861)
    assert quick.holds
    assert "(1.50 times at 9,861 numbers; not measured at 26,000)" in quick.text
    [slow] = round_claims({"without": [1.0], "with": [1.6]}, TARGET)
    assert not slow.holds
    assert "(1.60 times)" in slow.text


def test_rounds_are_measured_at_the_size_of_the_limit() -> None:
    assert TARGET <= count_numbers() < 1.02 * TARGET


def test_a_second_sum_is_stated() -> None:
    run = {
        "kills": {"server": 5},
        "rounds": 5,
        "sums": 10,
        "second_sums": 0,
        "lost": 0,
        "uploads": 25,
        "unpaid": 0,
        "is_comparable": True,
        "has_same_model": True,
    }
    assert all(claim.holds for claim in kill_claims([run, run]))
    broken = {**run, "second_sums": 1, "lost": 6, "unpaid": 1, "rounds": 4, "has_same_model": False}
    assert not any(claim.holds for claim in kill_claims([run, broken]))
