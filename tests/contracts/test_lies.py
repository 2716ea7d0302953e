"""A client with a valid key that lies: the others finish, their model is as good, and the liar is named."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from client.session import Session
from client.state import MemoryStore
from common.config.run import RunConfig
from common.methods.registry import METHODS
from common.options import Scalar
from common.reply_lengths import MAX_PLAUSIBLE
from deploy.simulation import InProcessGrid
from server import round_limits
from server.artifacts import RunDirectory
from server.events import Round
from server.result import Result
from server.run import run
from tests.support.configurations import TASKS_OF
from tests.support.liars import HARMFUL, REPORTED, Lie, LyingGrid
from tests.support.toy_sessions import toy_sessions
from tests.support.toys import CATALOGUE, configured

CLIENTS, LIAR, SEEDS = 7, 7, (0, 1, 2)
STEPS, ROUNDS = 12, 3
NAME = f"client-{LIAR - 1}"
UNSHARED = {"local"}
"""Methods without a shared update, in which a lie about it has no effect."""
SHARED = sorted(name for name in METHODS if name not in TASKS_OF and name not in UNSHARED)
QUICK = "fedavg", "fedrule", "ifca"


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_limits, "GRACE_SECONDS", 0.05)


def configuration(method: str, folder: Path, seed: int = 0) -> RunConfig:
    path = folder / "catalogue.json"
    path.write_text(CATALOGUE.to_json())
    options: dict[str, Scalar] = {"lr": 0.05, "local_steps": STEPS, "federation__patience": 0.1}
    return configured(method, rounds=ROUNDS, seed=seed, catalogue=str(path), **options)


def quality(result: Result) -> float:
    """Return the mean loss of the honest clients."""
    return float(np.mean([c.metrics["loss"] for name, c in result.clients.items() if name != NAME and c.metrics]))


@cache
def honest(method: str) -> tuple[float, float]:
    """Return the quality without the liar, and its spread over seeds."""
    with TemporaryDirectory() as folder:
        runs = [configuration(method, Path(folder), seed) for seed in SEEDS]
        sessions = toy_sessions([MemoryStore() for _ in range(CLIENTS)])
        others = {node: session for node, session in sessions.items() if node != LIAR}
        found = [quality(run(InProcessGrid(fresh(others), 1), c, Path(folder) / str(c.seed))) for c in runs]
    return found[0], max(found) - min(found)


def fresh(sessions: dict[int, Session]) -> dict[int, Session]:
    again = toy_sessions([MemoryStore() for _ in range(CLIENTS)])
    return {node: again[node] for node in sessions}


def lied(method: str, kind: str, lie: Lie, folder: Path) -> tuple[Result, list[Round]]:
    sessions = toy_sessions([MemoryStore() for _ in range(CLIENTS)])
    result = run(LyingGrid(sessions, LIAR, kind, lie), configuration(method, folder), folder)
    return result, [event for event in RunDirectory(folder, "toy").events() if isinstance(event, Round)]


def named(rounds: list[Round]) -> str:
    """Return all that the lines say about clients whose reply does not count."""
    return "\n".join(f"{name}: {why}" for line in rounds for name, why in [*line.refused.items(), *_missing(line)])


def _missing(line: Round) -> list[tuple[str, str]]:
    return [(name, "missing") for name in line.missing]


@pytest.mark.parametrize("method", SHARED)
@pytest.mark.parametrize("lie", HARMFUL)
def test_no_update_of_a_liar_harms_the_model(method: str, lie: str, tmp_path: Path) -> None:
    result, rounds = lied(method, *HARMFUL[lie], tmp_path)
    expected, spread = honest(method)
    assert (result.status, result.rounds_done) == ("completed", ROUNDS)
    assert abs(quality(result) - expected) <= max(spread, 0.02), named(rounds)
    if (lie, method) != ("one step", "pfedme"):  # whose mean is not per step, so that the number has no effect
        assert all(f"{NAME}: " in named([line]) for line in rounds)
    assert not any(name != NAME for line in rounds for name in line.refused)


@pytest.mark.parametrize("method", QUICK)
@pytest.mark.parametrize("lie", REPORTED)
def test_no_other_lie_ends_a_run_or_reaches_a_line(method: str, lie: str, tmp_path: Path) -> None:
    result, rounds = lied(method, *REPORTED[lie], tmp_path)
    expected, spread = honest(method)
    assert (result.status, result.rounds_done) == ("completed", ROUNDS)
    assert abs(quality(result) - expected) <= max(spread, 0.02), named(rounds)
    assert NAME in named(rounds) or f"node-{LIAR}" in named(rounds)
    assert all(value <= MAX_PLAUSIBLE for value in result.metrics.values())
    texts = (RunDirectory(tmp_path, "toy").path / "metrics.jsonl").read_text(), named(rounds)
    assert all(c not in text for text in texts for c in ("\x1b", "\x07", "\\u001b", "owned\\"))
