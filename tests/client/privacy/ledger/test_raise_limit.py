"""Increase of a budget: a row of the chain, never below the spent amount, never while a client has the ledger open."""

import datetime
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.privacy.claim import read_statements
from client.privacy.ledger.database import Slot
from client.privacy.ledger.ledger import Ledger, increase_budget
from common.errors import ConfigError, LedgerError, RefusedError
from common.privacy.accounts import Account, Pure, Rdp, Zcdp
from common.privacy.claims import LIMITED, LOWERED, RAISED, UNBOUNDED
from common.privacy.mechanisms import Gaussian, Laplace
from common.privacy.options import Unit
from tests.support import ledgers
from tests.support.ledgers import record_of


def opened(folder: Path, epsilon: float = 4.0, account: Account | None = None, unit: Unit = "client") -> Ledger:
    return ledgers.opened(folder, account or Pure(), epsilon, unit=unit)


def spend(ledger: Ledger, number: int, epsilon: float = 1.0) -> None:
    ledger.release(Slot("run", number), ledger.terms(Laplace(epsilon, 1.0)), lambda: b"noise")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a closed ledger of ε = 4, of which 3 are spent."""
    ledger = opened(tmp_path)
    for number in range(3):
        spend(ledger, number)
    ledger.close()
    return tmp_path


def altered(folder: Path, *statements: str) -> None:
    db = sqlite3.connect(folder / "ledger")
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


def test_more_can_be_spent_once_ledger_and_policy_say_so(folder: Path) -> None:
    [row] = increase_budget(folder / "ledger", 6.0, record_of(folder))
    assert (row.sequence, row.unit, row.raised.before, row.raised.epsilon) == (4, "client", 4.0, 6.0)
    cautious = opened(folder, epsilon=4.0)
    assert cautious.total == 4.0, "the policy still says 4"
    cautious.close()
    ledger = opened(folder, epsilon=100.0)
    assert (ledger.total, ledger.remaining()) == (6.0, 3.0)
    for number in range(3, 6):
        spend(ledger, number)
    with pytest.raises(RefusedError, match="privacy budget"):
        spend(ledger, 6, 0.01)
    ledger.close()
    assert opened(folder, epsilon=6.0).spent() == 6.0


def test_the_statement_says_that_and_when_it_was_raised(folder: Path) -> None:
    increase_budget(folder / "ledger", 6.0, record_of(folder))
    increase_budget(folder / "ledger", 8.0, record_of(folder))
    [statement] = read_statements(folder / "ledger")
    claim = statement.claim
    assert (claim.epsilon, claim.total, claim.spent, claim.left) == (8.0, 8.0, 3.0, 5.0)
    assert [(one.before, one.epsilon) for one in claim.raises] == [(4.0, 6.0), (6.0, 8.0)]
    channels = [channel for channel in claim.uncovered if channel.startswith("raised budget")]
    assert len(channels) == 2
    assert f"the limit was ε = 4 until {claim.raises[0].time}" in channels[0]
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(claim.raises[1].time)
    assert abs(age.total_seconds()) < 60
    assert opened(folder, epsilon=8.0).claim() == claim


def test_what_is_no_increase_is_refused_and_leaves_the_ledger_unchanged(folder: Path) -> None:
    before = (folder / "ledger").read_bytes()
    for epsilon, reason in (
        (2.5, "is below ε = 3, which was spent under unit client"),
        (3.5, "already allows ε = 4"),
        (4.0, "already allows ε = 4"),
        (0.0, "not a valid limit"),
        (-1.0, "not a valid limit"),
        (float("nan"), "not a valid limit"),
        (float("inf"), "not a valid limit"),
    ):
        with pytest.raises(ConfigError, match=reason):
            increase_budget(folder / "ledger", epsilon, record_of(folder))
    assert (folder / "ledger").read_bytes() == before


def test_under_a_smaller_delta_the_spent_amount_can_exceed_a_larger_epsilon(tmp_path: Path) -> None:
    ledger = opened(tmp_path, account=Zcdp())
    ledger.release(Slot("run", 1), ledger.terms(Gaussian(ledger.total, 1.0)), lambda: b"noise")
    ledger.close()
    Ledger(tmp_path / "ledger", "client", Zcdp(), 4.0, 1e-9, record_of(tmp_path)).close()
    with pytest.raises(ConfigError, match="which was spent"):
        increase_budget(tmp_path / "ledger", 4.1, record_of(tmp_path))
    [row] = increase_budget(tmp_path / "ledger", 6.0, record_of(tmp_path))
    assert row.raised.epsilon == 6.0


def test_every_account_that_allows_less_is_raised_and_none_lowered(tmp_path: Path) -> None:
    opened(tmp_path, 4.0).close()
    opened(tmp_path, 9.0, Rdp(4), "record").close()
    assert [(row.unit, row.sequence) for row in increase_budget(tmp_path / "ledger", 6.0)] == [("client", 1)]
    rows = increase_budget(tmp_path / "ledger", 10.0)
    assert [(row.unit, row.sequence, row.raised.before) for row in rows] == [("client", 2, 6.0), ("record", 3, 9.0)]
    client, record = read_statements(tmp_path / "ledger")
    assert (client.claim.epsilon, record.claim.epsilon) == (10.0, 10.0)
    assert (len(client.claim.raises), len(record.claim.raises)) == (2, 1)


def test_it_is_refused_while_a_client_holds_the_ledger(folder: Path) -> None:
    ledger = opened(folder)
    with pytest.raises(LedgerError, match=r"locked; nothing was released; another process is using it: stop that"):
        increase_budget(folder / "ledger", 6.0, record_of(folder))
    assert (ledger.total, ledger.entries()[-1].sequence) == (4.0, 3)
    ledger.close()
    assert increase_budget(folder / "ledger", 6.0, record_of(folder))


def test_it_is_refused_while_another_process_holds_the_ledger_and_works_once_that_died(folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path;"
        "from client.privacy.ledger.ledger import Ledger; from common.privacy.accounts import Pure;"
        f"ledger = Ledger(Path({str(folder / 'ledger')!r}), 'client', Pure(), 4.0, 1e-5);"
        "print('open', flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        with pytest.raises(LedgerError, match="locked"):
            increase_budget(folder / "ledger", 6.0, record_of(folder))
        process.kill()
    assert increase_budget(folder / "ledger", 6.0, record_of(folder))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE raises SET epsilon = 1000 WHERE sequence = 4",
        "UPDATE raises SET epsilon_before = 1 WHERE sequence = 4",
        "UPDATE raises SET time = '1999' WHERE sequence = 4",
        "UPDATE raises SET unit = 'record' WHERE sequence = 4",
        "DELETE FROM raises WHERE sequence = 4",
        "DELETE FROM raises",
        "DROP TABLE raises",
        "PRAGMA user_version = 1",
        "UPDATE raises SET sequence = 9 WHERE sequence = 4",
        "INSERT INTO raises VALUES (6, '2026', 'client', 6, 1000, 'forged')",
        "UPDATE releases SET cost = cost / 2 WHERE sequence = 5",
        "DELETE FROM releases WHERE sequence = 5",
    ],
)
def test_an_increase_that_was_altered_or_is_missing_stops_everything(damage: str, folder: Path) -> None:
    increase_budget(folder / "ledger", 6.0, record_of(folder))
    ledger = opened(folder, 6.0)
    spend(ledger, 5)
    ledger.close()
    altered(folder, damage)
    for ask in (lambda: opened(folder, 1000.0), lambda: increase_budget(folder / "ledger", 7.0, record_of(folder))):
        with pytest.raises(LedgerError, match=r"ledger"):
            ask()


def test_the_record_contains_an_increase_that_was_the_newest_row(folder: Path) -> None:
    shutil.copy(folder / "ledger", folder / "older")
    increase_budget(folder / "ledger", 6.0, record_of(folder))
    (folder / "older").rename(folder / "ledger")
    with pytest.raises(LedgerError, match="older copy"):
        opened(folder)
    with pytest.raises(LedgerError, match="older copy"):
        increase_budget(folder / "ledger", 6.0, record_of(folder))


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
