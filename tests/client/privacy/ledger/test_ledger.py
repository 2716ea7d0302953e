"""The ledger: paid before it is made, the same bytes for the same slot, and never a release that was not paid."""

import datetime
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.privacy.claim import statements
from client.privacy.ledger import records
from client.privacy.ledger.database import MEMORY, create
from client.privacy.ledger.ledger import Ledger
from client.privacy.ledger.records import Slot, Terms
from client.privacy.ledger.rollback import RollbackRecord
from common.errors import RefusedError
from common.privacy.accounts import Account, Pure, Rdp, Zcdp, portion
from common.privacy.claims import UNBOUNDED
from common.privacy.mechanisms.dp_sgd import DpSgd
from common.privacy.mechanisms.gaussian import Gaussian
from common.privacy.mechanisms.laplace import Laplace

EPSILON, DELTA = 10.0, 1e-5


@pytest.fixture(params=["disk", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return opened(tmp_path) if request.param == "disk" else Ledger(MEMORY, "client", Zcdp(), EPSILON, DELTA)


def opened(folder: Path, account: Account | None = None, epsilon: float = EPSILON, delta: float = DELTA) -> Ledger:
    path = folder / "ledger"
    if not path.exists():
        create(path, "lineage")
    return Ledger(path, "client", account or Zcdp(), epsilon, delta, RollbackRecord(folder / "state" / "witness.json"))


class Maker:
    """Makes other bytes at each call."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> bytes:
        self.made += 1
        return str(self.made).encode()


def priced(ledger: Ledger, share: float = 0.1) -> Terms:
    return ledger.terms(Gaussian(share * ledger.total, 1.0))


def test_a_release_is_paid_before_it_is_made(ledger: Ledger) -> None:
    spent: list[float] = []

    def make() -> bytes:
        spent.append(ledger.spent())
        return b"noise"

    assert ledger.release(Slot("run", 1), priced(ledger), make) == b"noise"
    assert spent == [0.1 * ledger.total]
    assert ledger.remaining() == pytest.approx(0.9 * ledger.total)


def test_a_client_that_died_between_keeping_and_saying_so_still_counts_what_it_sends(tmp_path: Path) -> None:
    first = opened(tmp_path)
    number = first.reserve(Slot("run", 1), priced(first))
    assert isinstance(number, int)
    first._kept.put(number, b"noise")  # what `store` does before the last write
    first.close()
    second = opened(tmp_path)
    assert second.release(Slot("run", 1), priced(second), Maker()) == b"noise"
    assert [row.status for row in second.rows()] == ["released"]


def test_a_retry_sends_the_same_bytes_and_costs_nothing(ledger: Ledger, tmp_path: Path) -> None:
    make, slot = Maker(), Slot("run", 1)
    first = ledger.release(slot, priced(ledger), make)
    again = opened(tmp_path).release(slot, priced(ledger), make) if (tmp_path / "ledger").exists() else first
    assert ledger.release(slot, priced(ledger), make) == first == again
    assert (make.made, ledger.spent()) == (1, 0.1 * ledger.total)
    assert ledger.keeps(slot)


@pytest.mark.parametrize(
    "other", [Slot("run", 2), Slot("other", 1), Slot("run", 1, "second"), Slot("run", 1, kind="loss")]
)
def test_another_slot_is_another_release(other: Slot, ledger: Ledger) -> None:
    make = Maker()
    assert ledger.release(Slot("run", 1), priced(ledger), make) != ledger.release(other, priced(ledger), make)
    assert ledger.spent() == pytest.approx(0.2 * ledger.total)
    assert ledger.spent_in("run") == pytest.approx((0.1 if other.run == "other" else 0.2) * ledger.total)


@pytest.mark.parametrize(
    "change", [{"cost": 1e-9}, {"noise": 1e-9}, {"sensitivity": 9.0}, {"mechanism": "other"}, {"neighbours": "none"}]
)
def test_a_slot_on_other_terms_is_refused(change: dict[str, Any], ledger: Ledger) -> None:
    make = Maker()
    ledger.release(Slot("run", 1), priced(ledger), make)
    with pytest.raises(RefusedError, match="other terms"):
        ledger.release(Slot("run", 1), replace(priced(ledger), **change), make)
    assert (make.made, ledger.spent()) == (1, 0.1 * ledger.total)


def test_what_was_paid_and_not_kept_is_paid_anew(ledger: Ledger) -> None:
    def crash() -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.release(Slot("run", 1), priced(ledger), crash)
    assert not ledger.keeps(Slot("run", 1))
    assert ledger.release(Slot("run", 1), priced(ledger), Maker()) == b"1"
    assert [row.status for row in ledger.rows()] == ["reserved", "released"]
    assert ledger.spent() == 0.2 * ledger.total


def test_acknowledged_bytes_are_forgotten_and_what_they_cost_is_not(ledger: Ledger) -> None:
    make = Maker()
    for number in (1, 2, 3):
        ledger.release(Slot("run", number), priced(ledger), make)
    ledger.release(Slot("other", 1), priced(ledger), make)
    ledger.acknowledge("run", 3)
    kept = [ledger.keeps(slot) for slot in (Slot("run", 1), Slot("run", 2), Slot("run", 3), Slot("other", 1))]
    assert kept == [False, False, True, True]
    assert ledger.spent() == pytest.approx(0.4 * ledger.total)
    ledger.release(Slot("run", 1), priced(ledger), make)
    assert ledger.spent() == pytest.approx(0.5 * ledger.total), "asked for again, it is another release"


def test_the_budget_is_spent_to_the_last_portion_and_not_beyond(ledger: Ledger) -> None:
    terms, make = ledger.terms(Gaussian(portion(ledger.total, 30), 1.0)), Maker()
    for number in range(30):
        ledger.release(Slot("run", number), terms, make)
    with pytest.raises(RefusedError, match="privacy budget"):
        ledger.release(Slot("another run", 0), terms, make)
    assert make.made == len(ledger.rows()) == 30
    assert ledger.total * (1 - 1e-12) <= ledger.spent() <= ledger.total


def test_two_releases_at_half_cost_exactly_one(ledger: Ledger) -> None:
    half = ledger.terms(Gaussian(ledger.total / 2, 1.0))
    for number in (0, 1):
        ledger.release(Slot("run", number), half, Maker())
    assert (ledger.spent(), ledger.remaining()) == (ledger.total, 0.0)
    assert ledger.claim().epsilon_so_far == pytest.approx(EPSILON, rel=1e-12)


def test_a_row_says_everything_about_a_release(ledger: Ledger) -> None:
    ledger.release(Slot("run", 4, "second", "update"), ledger.terms(Gaussian(0.5, 1.0)), Maker())
    [row] = ledger.rows()
    assert row.slot == Slot("run", 4, "second", "update")
    assert row.terms == Terms("client", "gaussian", "replace-one", 2.0, 2.0, "zcdp", 0.5)
    assert (row.sequence, row.status) == (1, "released")
    assert datetime.datetime.fromisoformat(row.time).utcoffset() == datetime.timedelta(0)


def test_each_unit_has_an_account_of_its_own(tmp_path: Path) -> None:
    client = opened(tmp_path)
    record = Ledger(
        tmp_path / "ledger", "record", Rdp(4), EPSILON, DELTA, RollbackRecord(tmp_path / "state" / "witness.json")
    )
    client.release(Slot("run", 1), priced(client), Maker())
    terms = record.terms(DpSgd(2.0, 0.5, 3, 1.0))
    assert (terms.neighbours, terms.sensitivity, terms.noise) == ("add-or-remove-one", 1.0, 2.0)
    record.release(Slot("run", 2), terms, Maker())
    assert (client.spent(), record.spent()) == (0.1 * client.total, terms.cost)
    assert (len(client.rows()), len(record.rows())) == (1, 1)
    with pytest.raises(RefusedError, match="counts in zcdp for unit client"):
        client.release(Slot("run", 3), terms, Maker())


def test_the_account_is_fixed_by_the_first_release(tmp_path: Path) -> None:
    first = opened(tmp_path, Pure())
    first.release(Slot("run", 1), first.terms(Laplace(0.5, 1.0)), Maker())
    first.close()
    later = opened(tmp_path, Zcdp())
    later.count_in(Zcdp())
    assert (later.account, later.total, later.spent()) == (Pure(), EPSILON, 0.5)
    with pytest.raises(RefusedError, match="no finite cost in the pure account"):
        later.terms(Gaussian(0.1, 1.0))
    assert later.terms(Laplace(0.5, 1.0)).cost == 0.5


def test_an_account_on_which_nothing_was_released_may_be_exchanged(tmp_path: Path) -> None:
    opened(tmp_path, Pure(), delta=1e-8).close()
    ledger = opened(tmp_path, Zcdp(), epsilon=20.0)
    assert (ledger.account, ledger.total) == (Zcdp(), Zcdp().total(EPSILON, 1e-8)), "ε and δ stay what they were"
    ledger.count_in(Rdp(8))
    assert ledger.total == Rdp(8).total(EPSILON, 1e-8)
    ledger.count_in(Pure())
    ledger.release(Slot("run", 1), ledger.terms(Laplace(0.5, 1.0)), Maker())
    ledger.close()
    again = opened(tmp_path, Zcdp())
    assert (again.account, again.total, again.spent()) == (Pure(), EPSILON, 0.5), "its seal holds"


def test_what_was_paid_and_perhaps_never_sent_fixes_the_account_too(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.reserve(Slot("run", 1), priced(first))
    first.count_in(Pure())
    assert first.account == opened(tmp_path, Pure()).account == Zcdp()


def test_of_two_who_opened_one_unit_in_two_accounts_only_the_first_to_release_counts(tmp_path: Path) -> None:
    """Each booked in what it had opened, else: zCDP and pure ε in one unit, each with a whole budget."""
    gaussian, laplace = opened(tmp_path, Zcdp()), opened(tmp_path, Pure())
    asked = laplace.terms(Laplace(0.5, 1.0))
    gaussian.release(Slot("one", 1), priced(gaussian), Maker())
    with pytest.raises(RefusedError, match="counts in zcdp for unit client"):
        laplace.release(Slot("two", 1), asked, Maker())
    assert (laplace.account, laplace.total, laplace.remaining()) == (Zcdp(), gaussian.total, gaussian.remaining())
    assert {row.terms.account for row in opened(tmp_path).rows()} == {"zcdp"}


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


def test_a_clock_that_goes_backwards_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    years = iter((2030, 1999, 2024))

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return datetime.datetime(next(years), 1, 1, tzinfo=tz)

    monkeypatch.setattr(records, "datetime", Clock)
    ledger = opened(tmp_path)
    for number in range(3):
        ledger.release(Slot("run", number), priced(ledger), Maker())
    again = opened(tmp_path)
    assert [row.time[:4] for row in again.rows()] == ["2030", "1999", "2024"]
    assert again.spent() == pytest.approx(0.3 * ledger.total)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Slot("", 1),
        lambda: Slot("run", -1),
        lambda: Slot("run", 2**62),
        lambda: Slot("run", True),
        lambda: Slot("run", 1.0),  # type: ignore[arg-type]
        lambda: Slot("r" * 201, 1),
        lambda: Terms("client", "gaussian", "replace-one", math.nan, 1.0, "zcdp", 1.0),
        lambda: Terms("client", "gaussian", "replace-one", 1.0, 0.0, "zcdp", 1.0),
    ],
)
def test_a_slot_or_terms_without_sense_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(RefusedError, match="privacy"):
        make()


COSTS = st.one_of(
    st.sampled_from([0.0, -1.0, math.nan, math.inf, -math.inf, 1e308, 5e-324]),
    st.floats(1e-9, 2.0),
    st.floats(),
)
ASKED = st.tuples(
    st.sampled_from(["a", "b"]),
    st.integers(0, 3),
    st.sampled_from(["client", "record"]),
    st.sampled_from(["zcdp", "pure", "rdp-4"]),
    COSTS,
    st.sampled_from(["release", "crash", "acknowledge", "reopen"]),
)


@given(st.sampled_from([Zcdp(), Pure(), Rdp(4)]), st.lists(ASKED, max_size=40), st.floats(0.1, 20))
def test_no_caller_can_spend_more_than_the_budget(
    account: Account, asked: list[tuple[str, int, str, str, float, str]], epsilon: float
) -> None:
    """Replays, other arms, other units and accounts, absurd costs, crashes: what was sent was paid, within the total."""
    ledger, make = Ledger(MEMORY, "client", account, epsilon, DELTA), Maker()
    sent: dict[bytes, float] = {}

    def crash() -> bytes:
        raise InterruptedError

    for run, number, unit, name, cost, what in asked:
        before = ledger.spent()
        try:
            if what == "acknowledge":
                ledger.acknowledge(run, number)
                continue
            terms = Terms(unit, "gaussian", "replace-one", 2.0, 1.0, name, cost)  # type: ignore[arg-type]
            sent[ledger.release(Slot(run, number), terms, crash if what == "crash" else make)] = cost
        except RefusedError:
            assert ledger.spent() == before
        except InterruptedError:
            assert ledger.spent() >= before
        assert math.fsum(sent.values()) <= ledger.spent() <= ledger.total


@pytest.mark.parametrize("first", [EPSILON, UNBOUNDED])
def test_a_limit_below_what_had_left_is_no_guarantee(first: float, tmp_path: Path) -> None:
    ledger = opened(tmp_path, Pure(), epsilon=first)
    ledger.release(Slot("run", 1), ledger.terms(Laplace(8.0, 1.0)), lambda: b"noise")
    ledger.close()
    lowered = opened(tmp_path, Pure(), epsilon=2.0)
    claim = lowered.claim()
    lowered.close()
    assert (claim.epsilon, claim.limited, claim.left) == (first, first == EPSILON, 0.0)
    [told] = statements(tmp_path / "ledger")
    assert told.claim == claim
