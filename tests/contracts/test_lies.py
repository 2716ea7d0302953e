"""A client with a valid key that lies: the others finish, their model is as good, and the liar is named."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from client.session import Session
from client.state import MemoryStore
from common.config.run import RunConfig
from common.contribution import MAX_PLAUSIBLE
from common.methods.registry import METHODS
from common.options import Scalar
from deploy.simulation.grid import InProcessGrid
from server.exchange import grid as round_limits
from server.record.events import RoundEvent
from server.record.folder import RunDirectory
from server.record.result import Result
from server.run import run
from studies.lies.cases import lies_of
from studies.lies.liars import Lie, LyingGrid, lies
from tests.support.configurations import TASKS_OF
from tests.support.toy_sessions import toy_sessions
from tests.support.toys import CATALOGUE, configured

CLIENTS, LIAR, SEEDS = 7, 7, (0, 1, 2)
STEPS, ROUNDS = 4, 3
NAME = f"client-{LIAR - 1}"
LIES = lies("hr20", STEPS)
CASES = [(method, lie) for method in METHODS if method not in TASKS_OF for lie in lies_of(method)]
IN_EACH_ROUND = {"3.3e38", "1e30", "100 x norm", "examples"}
"""Lies of a client that is asked again in each round, and refused again."""


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
        found = [quality(run(InProcessGrid(fresh(others), CLIENTS), c, Path(folder) / str(c.seed))) for c in runs]
    return found[0], max(found) - min(found)


def fresh(sessions: dict[int, Session]) -> dict[int, Session]:
    again = toy_sessions([MemoryStore() for _ in range(CLIENTS)])
    return {node: again[node] for node in sessions}


def lied(method: str, kind: str, lie: Lie, folder: Path) -> tuple[Result, list[RoundEvent]]:
    sessions = toy_sessions([MemoryStore() for _ in range(CLIENTS)])
    result = run(LyingGrid(sessions, LIAR, kind, lie, CLIENTS), configuration(method, folder), folder)
    return result, [event for event in RunDirectory(folder, "toy").events() if isinstance(event, RoundEvent)]


def named(rounds: list[RoundEvent]) -> str:
    """Return all that the lines say about clients whose reply does not count."""
    missing = [f"{name}: missing" for line in rounds for name in line.missing]
    return "\n".join([f"{name}: {why}" for line in rounds for name, why in line.refused.items()] + missing)


@pytest.mark.parametrize(("method", "lie"), CASES)
def test_a_lie_harms_nobody_and_the_liar_is_named(method: str, lie: str, tmp_path: Path) -> None:
    result, rounds = lied(method, *LIES[lie], tmp_path)
    expected, spread = honest(method)
    assert (result.status, result.rounds_done) == ("completed", ROUNDS)
    assert abs(quality(result) - expected) <= max(spread, 0.02), named(rounds)
    if lie != "one step" or METHODS[method].options().capabilities().per_step:  # else the number has no effect
        assert NAME in named(rounds) or f"node-{LIAR}" in named(rounds)
    if lie in IN_EACH_ROUND:
        assert all(f"{NAME}: " in named([line]) for line in rounds)
    assert not any(name not in (NAME, f"node-{LIAR}") for line in rounds for name in (*line.refused, *line.missing))
    assert all(value <= MAX_PLAUSIBLE for value in result.metrics.values())
    texts = (RunDirectory(tmp_path, "toy").path / "metrics.jsonl").read_text(), named(rounds)
    assert all(c not in text for text in texts for c in ("\x1b", "\x07", "\\u001b", "owned\\"))
