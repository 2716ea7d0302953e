"""Every way to release an update keeps to its claim, and an audit detects deliberate faults."""

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.privacy.accounts import epsilon_of_gdp, gdp_of
from common.secure.noise import DiscreteGaussian
from common.secure.quantisation import integer_clip, noise_scale
from studies.audit.cases import DELTA, HALVED, REDRAWN, UNCHARGED, UNCLIPPED, Case
from studies.audit.mechanisms import audit
from studies.audit.releases import SIZE
from studies.harness.row import Metrics


def audited(case: Case) -> Metrics:
    rng = np.random.default_rng(0)
    return audit(case, lambda: rng, lambda: rng.bytes(32))


@pytest.mark.parametrize(
    ("case", "share"),
    [
        (Case("gaussian", 2.0, trials=5_000), 0.7),
        (Case("gaussian", 8.0, trials=800), 0.7),
        (Case("laplace", 2.0, trials=1_200), 0.7),
        (Case("privunit", 2.0, trials=1_000), 0.7),
        (Case("sum", 8.0, trials=300), 0.5),
    ],
    ids=lambda value: str(getattr(value, "key", value)),
)
def test_the_audited_loss_is_below_the_claimed_and_not_far(case: Case, share: float) -> None:
    found = audited(case)
    assert share * found["claimed"] < found["audited"] <= found["claimed"]
    assert found["claimed_epsilon"] == pytest.approx(charged(case), rel=1e-4), (
        "the ledger charges what the run announces"
    )


def charged(case: Case) -> float:
    """Return the ε that is charged; the noise of sums has a whole number as its scale, and costs a little less."""
    if case.way != "sum":
        return case.epsilon
    bound = integer_clip(SIZE)
    mechanism = DiscreteGaussian(bound, "signed", noise_scale(gdp_of(case.epsilon, DELTA), bound, "signed"))
    epsilon = epsilon_of_gdp(mechanism.privacy_cost.gdp, DELTA)
    assert 0.998 * case.epsilon < epsilon <= case.epsilon
    return epsilon


@pytest.mark.parametrize(
    "case",
    [
        Case("gaussian", 2.0, HALVED, trials=1_000),
        Case("laplace", 2.0, HALVED, trials=500),
        Case("sum", 8.0, HALVED, trials=100),
        Case("gaussian", 2.0, UNCLIPPED, trials=300),
        Case("laplace", 2.0, UNCHARGED, rounds=2, trials=700),
        Case("laplace", 2.0, REDRAWN, trials=700),
    ],
    ids=lambda value: str(getattr(value, "key", value)),
)
def test_a_fault_shows(case: Case) -> None:
    found = audited(case)
    assert found["audited"] > found["claimed"]


def test_no_ledger_or_book_of_an_owner_is_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The only databases are in memory, and no file appears in the folders where owners keep theirs."""
    connect, opened = sqlite3.connect, list[str]()

    def noted(path: str, *arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(path)
        return connect(path, *arguments, **options)

    for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "FEDLOOM_STATE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sqlite3, "connect", noted)
    for way in ("gaussian", "sum"):
        audited(Case(way, 2.0, trials=30))
    assert set(opened) == {":memory:"}
    assert not [*tmp_path.rglob("*")]
