"""Ledger: charged before noise is drawn, the same bytes for the same slot, and never a release that was not charged."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from client.privacy.claim import read_statements
from client.privacy.ledger.database import Slot
from client.privacy.ledger.ledger import Ledger
from common.errors import RefusedError
from common.privacy.accounts import Pure, Rdp, Zcdp
from common.privacy.claims import UNBOUNDED
from common.privacy.mechanisms import DpSgd, Gaussian, Laplace
from tests.support.ledgers import DELTA, EPSILON, Maker, opened, record_of, terms_of


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


def test_each_unit_has_an_account_of_its_own(tmp_path: Path) -> None:
    client = opened(tmp_path)
    record = Ledger(tmp_path / "ledger", "record", Rdp(4), EPSILON, DELTA, record_of(tmp_path))
    client.release(Slot("run", 1), terms_of(client), Maker())
    terms = record.terms(DpSgd(2.0, 0.5, 3, 1.0))
    assert (terms.neighbours, terms.sensitivity, terms.noise) == ("add-or-remove-one", 1.0, 2.0)
    record.release(Slot("run", 2), terms, Maker())
    assert (client.spent(), record.spent()) == (0.1 * client.total, terms.cost)
    assert (len(client.entries()), len(record.entries())) == (1, 1)
    with pytest.raises(RefusedError, match="uses the zcdp account for unit client"):
        client.release(Slot("run", 3), terms, Maker())


def test_the_account_is_fixed_by_the_first_release(tmp_path: Path) -> None:
    first = opened(tmp_path, Pure())
    first.release(Slot("run", 1), first.terms(Laplace(0.5, 1.0)), Maker())
    first.close()
    later = opened(tmp_path, Zcdp())
    later.use_account(Zcdp())
    assert (later.account, later.total, later.spent()) == (Pure(), EPSILON, 0.5)
    with pytest.raises(RefusedError, match="no finite cost in the pure account"):
        later.terms(Gaussian(0.1, 1.0))
    assert later.terms(Laplace(0.5, 1.0)).cost == 0.5


def test_an_account_on_which_nothing_was_released_may_be_exchanged(tmp_path: Path) -> None:
    opened(tmp_path, Pure(), delta=1e-8).close()
    ledger = opened(tmp_path, Zcdp(), epsilon=20.0)
    assert (ledger.account, ledger.total) == (Zcdp(), Zcdp().total(EPSILON, 1e-8)), "ε and δ stay what they were"
    ledger.use_account(Rdp(8))
    assert ledger.total == Rdp(8).total(EPSILON, 1e-8)
    ledger.use_account(Pure())
    ledger.release(Slot("run", 1), ledger.terms(Laplace(0.5, 1.0)), Maker())
    ledger.close()
    again = opened(tmp_path, Zcdp())
    assert (again.account, again.total, again.spent()) == (Pure(), EPSILON, 0.5), "its seal holds"


def test_a_charge_that_was_perhaps_never_sent_fixes_the_account_too(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.charge(Slot("run", 1), terms_of(first))
    first.use_account(Pure())
    assert first.account == opened(tmp_path, Pure()).account == Zcdp()


def test_of_two_who_opened_one_unit_in_two_accounts_only_the_first_to_release_counts(tmp_path: Path) -> None:
    """Each booked in what it had opened, else: zCDP and pure ε in one unit, each with a whole budget."""
    gaussian, laplace = opened(tmp_path, Zcdp()), opened(tmp_path, Pure())
    asked = laplace.terms(Laplace(0.5, 1.0))
    gaussian.release(Slot("one", 1), terms_of(gaussian), Maker())
    with pytest.raises(RefusedError, match="uses the zcdp account for unit client"):
        laplace.release(Slot("two", 1), asked, Maker())
    assert (laplace.account, laplace.total, laplace.remaining()) == (Zcdp(), gaussian.total, gaussian.remaining())
    assert {row.terms.account for row in opened(tmp_path).entries()} == {"zcdp"}


def test_a_pure_mechanism_in_a_zcdp_account_costs_half_its_square(ledger: Ledger) -> None:
    assert ledger.terms(Laplace(0.5, 1.0)).cost == 0.125


@pytest.mark.parametrize(("later", "total"), [(20.0, 10.0), (10.0, 10.0), (4.0, 4.0)])
def test_a_budget_may_shrink_and_not_grow(later: float, total: float, tmp_path: Path) -> None:
    opened(tmp_path, Pure()).close()
    assert opened(tmp_path, Pure(), epsilon=later).total == total
    assert opened(tmp_path, Pure()).total == 10.0, "what was fixed first stays the most"


def test_a_smaller_delta_tightens(tmp_path: Path) -> None:
    opened(tmp_path).close()
    assert opened(tmp_path, delta=1e-8).total == Zcdp().total(EPSILON, 1e-8)
    assert opened(tmp_path, delta=1e-2).total == Zcdp().total(EPSILON, DELTA)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-5), (-1, 1e-5), (math.nan, 1e-5), (math.inf, 1e-5), (1, 0.0)])
def test_a_budget_that_is_no_positive_number_is_refused(epsilon: float, delta: float, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="positive number"):
        opened(tmp_path, epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("first", [EPSILON, UNBOUNDED])
def test_a_limit_below_the_spent_amount_is_no_guarantee(first: float, tmp_path: Path) -> None:
    ledger = opened(tmp_path, Pure(), epsilon=first)
    ledger.release(Slot("run", 1), ledger.terms(Laplace(8.0, 1.0)), lambda: b"noise")
    ledger.close()
    lowered = opened(tmp_path, Pure(), epsilon=2.0)
    claim = lowered.claim()
    lowered.close()
    assert (claim.epsilon, claim.limited, claim.left) == (first, first == EPSILON, 0.0)
    [statement] = read_statements(tmp_path / "ledger")
    assert statement.claim == claim
