"""Claims after the owner limited, lowered or raised a budget."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.privacy.claim import read_statements
from client.privacy.ledger.database import Slot
from client.privacy.ledger.ledger import Ledger, increase_budget
from common.errors import ConfigError
from common.privacy.accounts import Account, Pure, Zcdp
from common.privacy.claims import LIMITED, LOWERED, RAISED, UNBOUNDED
from common.privacy.mechanisms import Laplace
from common.privacy.options import Unit
from tests.support import ledgers
from tests.support.ledgers import record_of


def opened(folder: Path, epsilon: float = 4.0, account: Account | None = None, unit: Unit = "client") -> Ledger:
    return ledgers.opened(folder, account or Pure(), epsilon, unit=unit)


def spend(ledger: Ledger, number: int, epsilon: float = 1.0) -> None:
    ledger.release(Slot("run", number), ledger.terms(Laplace(epsilon, 1.0)), lambda: b"noise")


@given(st.lists(st.floats(0.1, 20.0), min_size=1, max_size=6))
def test_a_budget_never_falls_and_what_was_spent_stays_within_it(
    tmp_path_factory: pytest.TempPathFactory, wishes: list[float]
) -> None:
    folder, highest = tmp_path_factory.mktemp("raising"), 1.0
    for number, wish in enumerate(wishes):
        ledger = opened(folder, 1e3 if number else 1.0)
        spend(ledger, number, ledger.remaining() / 2)
        ledger.close()
        if wish > highest:
            assert increase_budget(folder / "ledger", wish)[0].raised.before == highest
        else:
            with pytest.raises(ConfigError, match="ε"):
                increase_budget(folder / "ledger", wish)
        highest = max(highest, wish)
        [statement] = read_statements(folder / "ledger")
        assert statement.claim.epsilon == highest
        assert 0 < statement.claim.spent <= highest


def test_a_first_limit_is_for_good_and_said_to_have_come_late(tmp_path: Path) -> None:
    unlimited = opened(tmp_path, UNBOUNDED)
    spend(unlimited, 0, 3.0)
    unlimited.close()
    for wished in (10.0, 50.0, UNBOUNDED):
        limited = opened(tmp_path, wished)
        assert (limited.epsilon, limited.claim().limited) == (10.0, True)
        limited.close()
    [statement] = read_statements(tmp_path / "ledger")
    [first] = statement.claim.raises
    assert (first.before, first.epsilon) == (UNBOUNDED, 10.0)
    assert LIMITED.format(**vars(first)) in statement.claim.uncovered
    assert [row.sequence for row in increase_budget(tmp_path / "ledger", 12.0, record_of(tmp_path))] == [3]
    [again] = read_statements(tmp_path / "ledger")
    assert RAISED.format(**vars(again.claim.raises[1])) in again.claim.uncovered


def test_a_limit_before_the_first_release_was_always_there(tmp_path: Path) -> None:
    opened(tmp_path, UNBOUNDED).close()
    opened(tmp_path, 10.0).close()
    late = opened(tmp_path, 50.0)
    assert (late.epsilon, late.claim().raises) == (10.0, ())


@pytest.mark.parametrize(("account", "said"), [(Zcdp(), True), (Pure(), False)])
def test_a_limit_that_was_lowered_after_a_look_is_said_to_be(account: Account, said: bool, tmp_path: Path) -> None:
    """The spent amount may be known: a limit just above it is no filter, except where ε themselves add up."""
    first = opened(tmp_path, 10.0, account)
    first.release(Slot("run", 1), first.terms(Laplace(0.5, 1.0)), lambda: b"noise")
    first.close()
    opened(tmp_path, 4.0, account).close()
    [statement] = read_statements(tmp_path / "ledger")
    assert statement.claim.epsilon == 4.0
    assert (LOWERED.format(before=10.0, epsilon=4.0) in statement.claim.uncovered) == said
