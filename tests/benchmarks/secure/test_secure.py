"""Cost of secure sums: its cases compare every sum, and its page follows from the stored results."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.secure import cost
from benchmarks.secure.__main__ import PAGE, RESULTS
from benchmarks.secure.cost import CASES, Case, Federation, measure
from benchmarks.secure.page import LIMITS, claims, write_page

ROOT = Path(__file__).parents[3]


def test_a_small_sum_is_measured() -> None:
    found = measure(Case(8, 300, 0.1))
    assert found["bytes"] == 4 * 300 + 216
    assert min(found.values()) >= 0
    assert Case(64, 300, 0.3).survivors == 45


def test_a_wrong_sum_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Federation.open
    monkeypatch.setattr(cost.Federation, "open", lambda self: opened(self) + np.eye(1, 300, dtype=np.int64)[0])
    with pytest.raises(AssertionError, match="differs from integers and noise"):
        measure(Case(8, 300, 0.1))


def test_the_page_follows_from_the_stored_results() -> None:
    stored = json.loads((ROOT / RESULTS).read_text())
    assert [(row["clients"], row["numbers"]) for row in stored["rows"]] == [(c.clients, c.numbers) for c in CASES]
    assert write_page(stored) == (ROOT / PAGE).read_text("utf-8")


def test_a_row_beyond_its_limit_is_named() -> None:
    limits = LIMITS[8, 10**5]
    names = ("quantise_ms", "mask_ms", "server_s", "helper_s", "noise_s")
    row = {"clients": 8, "numbers": 10**5, "bytes": 400_216, **dict(zip(names, limits, strict=True))}
    assert all(claim.holds for claim in claims([row], {"100000": 120.0}))
    slow = claims([{**row, "mask_ms": 1.6, "bytes": 402_000}], {"100000": 121.0})
    assert [claim.holds for claim in slow] == [True, False, True, True, True, False, False]
