"""Rows of a ledger: valid slots and terms, times, and costs of any caller within the total."""

import datetime
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.privacy.ledger import database
from client.privacy.ledger.database import MEMORY, Slot, Terms
from client.privacy.ledger.ledger import Ledger
from common.errors import RefusedError
from common.privacy.accounts import Account, Pure, Rdp, Zcdp
from common.privacy.mechanisms import Gaussian
from tests.support.ledgers import DELTA, Maker, opened, terms_of


def test_a_row_says_everything_about_a_release(ledger: Ledger) -> None:
    ledger.release(Slot("run", 4, "second", "update"), ledger.terms(Gaussian(0.5, 1.0)), Maker())
    [row] = ledger.entries()
    assert row.slot == Slot("run", 4, "second", "update")
    assert row.terms == Terms("client", "gaussian", "replace-one", 2.0, 2.0, "zcdp", 0.5)
    assert (row.sequence, row.status) == (1, "released")
    assert datetime.datetime.fromisoformat(row.time).utcoffset() == datetime.timedelta(0)


def test_a_clock_that_goes_backwards_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    years = iter((2030, 1999, 2024))

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return datetime.datetime(next(years), 1, 1, tzinfo=tz)

    monkeypatch.setattr(database, "datetime", Clock)
    ledger = opened(tmp_path)
    for number in range(3):
        ledger.release(Slot("run", number), terms_of(ledger), Maker())
    again = opened(tmp_path)
    assert [row.time[:4] for row in again.entries()] == ["2030", "1999", "2024"]
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
