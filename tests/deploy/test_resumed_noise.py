"""Killed simulations with noise: their privacy ledgers go on where they were, whatever is replayed."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from common.config.run import RunConfig
from common.errors import StateError
from common.privacy.mechanisms import build_account
from deploy.simulation.clients import open_sessions
from deploy.simulation.state import LEDGERS, KeptState, LedgerFile, simulate_measured
from server.record.result import Result
from tests.support.kills import killed_at
from tests.support.toys import toy_dataset

PARTS = [toy_dataset(1), toy_dataset(2), toy_dataset(3)]
KEPT = KeptState(keep=True)


def simulated(config: RunConfig, runs: Path, seed: int | None, *, resume: bool = False, **options: Any) -> Result:
    changed = config.model_copy(update={"resume": resume, **options})
    return simulate_measured(changed, PARTS, runs, together=1, noise_seed=seed, state=KEPT)[0]


def spent(config: RunConfig, runs: Path) -> list[float]:
    """Return what each client's ledger on disk has spent."""
    _, stores = open_sessions(PARTS)
    LedgerFile(runs / "toy" / "clients", "toy", stores).restore(0)
    unit, account = config.privacy.unit, build_account(config.privacy)
    return [store.ledgers(unit, account).spent() for store in stores]


@pytest.fixture
def config(settings: Callable[..., RunConfig]) -> RunConfig:
    """Return a configuration of three rounds with noise."""
    return settings("fedrule", privacy__unit="client", privacy__epsilon=8.0)


@pytest.mark.parametrize("seed", [None, 7])
def test_ledgers_go_on_and_seeded_noise_gives_the_same_bits(
    seed: int | None, config: RunConfig, tmp_path: Path
) -> None:
    with killed_at() as steps:
        through = simulated(config, tmp_path / "through", seed)
    assert not any(path.stat().st_mode & 0o077 for path in (tmp_path / "through/toy/clients").rglob("*"))
    whole = spent(config, tmp_path / "through")
    begun = steps.names.index("commit")
    for last in random.Random(0).sample(range(begun, len(steps.names)), 6):
        runs = tmp_path / str(last)
        with killed_at(last):
            simulated(config, runs, seed)
        before = spent(config, runs)
        resumed = simulated(config, runs, seed, resume=True)
        after = spent(config, runs)
        place = f"killed before {steps.names[last - 1]}, step {last}"
        assert all(late >= early for late, early in zip(after, before, strict=True)), place
        assert after == pytest.approx(whole), f"{place}: replies of a replayed round are sent again, not charged again"
        assert resumed.privacy.epsilon_spent_max == pytest.approx(through.privacy.epsilon_spent_max), place
        assert (resumed.model_sha256 == through.model_sha256) or seed is None, place


def unlink(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def alter(path: Path) -> None:
    content = path.read_bytes()
    at = content.index(b"toy", 20_000)  # in a row of a ledger
    path.write_bytes(content[:at] + b"try" + content[at + 3 :])


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (unlink, "is missing, or an older copy: it has 0 of 3 releases"),
        (truncate, "is damaged"),
        (alter, "is damaged: a ledger does not match its digest"),
        (link, "is a link"),
    ],
)
def test_a_damaged_file_of_ledgers_is_refused_by_name(
    harm: Callable[[Path], None], reason: str, config: RunConfig, tmp_path: Path
) -> None:
    simulated(config, tmp_path, 7, rounds=1)
    harm(tmp_path / "toy" / "clients" / LEDGERS)
    with pytest.raises(StateError, match=rf"{LEDGERS} {reason}.*new --run-id, or use --resume toy --forget-state"):
        simulated(config, tmp_path, 7, resume=True, rounds=2)


def test_older_and_foreign_ledgers_are_refused(config: RunConfig, tmp_path: Path) -> None:
    path = tmp_path / "toy" / "clients" / LEDGERS
    with killed_at() as steps:
        simulated(config, tmp_path, 7)
    with killed_at(1 + steps.names.index("commit") + steps.names[steps.names.index("commit") :].index("append")):
        simulated(config, tmp_path / "older", 7)
    path.write_bytes((tmp_path / "older" / "toy" / "clients" / LEDGERS).read_bytes())
    with pytest.raises(StateError, match=f"{LEDGERS} is missing, or an older copy: it has 3 of 9 releases"):
        simulated(config, tmp_path, 7, resume=True, rounds=4)
    simulated(config, tmp_path / "other", 7, run_id="other")
    path.write_bytes((tmp_path / "other" / "other" / "clients" / LEDGERS).read_bytes())
    with pytest.raises(StateError, match=f"{LEDGERS} is of another run"):
        simulated(config, tmp_path, 7, resume=True, rounds=4)
