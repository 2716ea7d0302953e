"""Ledger: charged before noise is drawn, the same bytes for the same slot, and never a release that was not charged."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from client.privacy.ledger.database import Slot
from client.privacy.ledger.ledger import Ledger
from common.errors import RefusedError
from common.privacy.mechanisms import Gaussian
from tests.support.ledgers import EPSILON, Maker, opened, terms_of


def test_a_release_is_charged_before_it_is_made(ledger: Ledger) -> None:
    spent: list[float] = []

    def make() -> bytes:
        spent.append(ledger.spent())
        return b"noise"

    assert ledger.release(Slot("run", 1), terms_of(ledger), make) == b"noise"
    assert spent == [0.1 * ledger.total]
    assert ledger.remaining() == pytest.approx(0.9 * ledger.total)


def test_a_crash_between_caching_and_marking_does_not_hide_a_release(tmp_path: Path) -> None:
    first = opened(tmp_path)
    number = first.charge(Slot("run", 1), terms_of(first))
    assert isinstance(number, int)
    first._cache.put(number, b"noise")  # what `store` does before the last write
    first.close()
    second = opened(tmp_path)
    assert second.release(Slot("run", 1), terms_of(second), Maker()) == b"noise"
    assert [row.status for row in second.entries()] == ["released"]


def test_a_retry_sends_the_same_bytes_and_costs_nothing(ledger: Ledger, tmp_path: Path) -> None:
    make, slot = Maker(), Slot("run", 1)
    first = ledger.release(slot, terms_of(ledger), make)
    again = opened(tmp_path).release(slot, terms_of(ledger), make) if (tmp_path / "ledger").exists() else first
    assert ledger.release(slot, terms_of(ledger), make) == first == again
    assert (make.made, ledger.spent()) == (1, 0.1 * ledger.total)
    assert ledger.has_cached(slot)


@pytest.mark.parametrize(
    "other", [Slot("run", 2), Slot("other", 1), Slot("run", 1, "second"), Slot("run", 1, kind="loss")]
)
def test_another_slot_is_another_release(other: Slot, ledger: Ledger) -> None:
    make = Maker()
    assert ledger.release(Slot("run", 1), terms_of(ledger), make) != ledger.release(other, terms_of(ledger), make)
    assert ledger.spent() == pytest.approx(0.2 * ledger.total)
    assert ledger.spent_in("run") == pytest.approx((0.1 if other.run == "other" else 0.2) * ledger.total)


@pytest.mark.parametrize(
    "change", [{"cost": 1e-9}, {"noise": 1e-9}, {"sensitivity": 9.0}, {"mechanism": "other"}, {"neighbours": "none"}]
)
def test_a_slot_on_other_terms_is_refused(change: dict[str, Any], ledger: Ledger) -> None:
    make = Maker()
    ledger.release(Slot("run", 1), terms_of(ledger), make)
    with pytest.raises(RefusedError, match="other terms"):
        ledger.release(Slot("run", 1), replace(terms_of(ledger), **change), make)
    assert (make.made, ledger.spent()) == (1, 0.1 * ledger.total)


def test_a_charge_without_cached_bytes_is_charged_again(ledger: Ledger) -> None:
    def crash() -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.release(Slot("run", 1), terms_of(ledger), crash)
    assert not ledger.has_cached(Slot("run", 1))
    assert ledger.release(Slot("run", 1), terms_of(ledger), Maker()) == b"1"
    assert [row.status for row in ledger.entries()] == ["reserved", "released"]
    assert ledger.spent() == 0.2 * ledger.total


def test_acknowledged_bytes_are_dropped_and_their_cost_stays(ledger: Ledger) -> None:
    make = Maker()
    for number in (1, 2, 3):
        ledger.release(Slot("run", number), terms_of(ledger), make)
    ledger.release(Slot("other", 1), terms_of(ledger), make)
    ledger.acknowledge("run", 3)
    cached = [ledger.has_cached(slot) for slot in (Slot("run", 1), Slot("run", 2), Slot("run", 3), Slot("other", 1))]
    assert cached == [False, False, True, True]
    assert ledger.spent() == pytest.approx(0.4 * ledger.total)
    ledger.release(Slot("run", 1), terms_of(ledger), make)
    assert ledger.spent() == pytest.approx(0.5 * ledger.total), "asked for again, it is another release"


def test_the_budget_is_spent_to_the_last_portion_and_not_beyond(ledger: Ledger) -> None:
    terms, make = ledger.terms(Gaussian(ledger.total / 30 * (1 - 1e-12), 1.0)), Maker()
    for number in range(30):
        ledger.release(Slot("run", number), terms, make)
    with pytest.raises(RefusedError, match="privacy budget"):
        ledger.release(Slot("another run", 0), terms, make)
    assert make.made == len(ledger.entries()) == 30
    assert ledger.total * (1 - 1e-11) <= ledger.spent() <= ledger.total


def test_two_releases_at_half_cost_exactly_one(ledger: Ledger) -> None:
    half = ledger.terms(Gaussian(ledger.total / 2, 1.0))
    for number in (0, 1):
        ledger.release(Slot("run", number), half, Maker())
    assert (ledger.spent(), ledger.remaining()) == (ledger.total, 0.0)
    assert ledger.claim().epsilon_so_far == pytest.approx(EPSILON, rel=1e-12)
