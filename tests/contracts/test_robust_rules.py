"""Rules of robust aggregation in every strategy: one liar within the norm bound has no effect."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from client.state import MemoryStore
from common.arrays import scale
from common.config.parse import parse
from common.options import Scalar
from common.wire.messages import TRAIN
from deploy.simulation.grid import InProcessGrid
from server.record.folder import RunDirectory
from server.run import run
from studies.lies.liars import LyingGrid, scaled, trained
from tests.support.configurations import refusal
from tests.support.strategies import Server, every_strategy, message_of, reply_of
from tests.support.toy_sessions import toy_sessions
from tests.support.toys import CATALOGUE, configured

RULES = ("median", "trimmed-mean", "multi-krum", "geometric-median")
FROM_FOUR = [rule for rule in RULES if rule != "multi-krum"]
CLIENTS, LIAR = 7, 7


def robust(variant: str, rule: str) -> Server:
    return Server(variant, robust=rule)


@every_strategy
@pytest.mark.parametrize("rule", FROM_FOUR)
def test_one_liar_among_four_equal_replies_has_no_effect(variant: str, rule: str) -> None:
    """The liar sends the opposite, nine times as long, after a third of the steps and with all records."""
    server, without = robust(variant, rule), Server(variant)
    honest = [message_of(name, reply_of("ann", examples=1)) for name in ("ann", "bob", "dee")]
    true = reply_of("ann")
    lie = replace(true, update=scale(true.update, -3), gradient=scale(true.gradient, -9), steps=1, examples=12)
    server.round(*honest, message_of("cyd", lie))
    without.round(*honest)
    assert server.trained[0].rejected == {}
    for name, a in without.strategy.state.model.items():
        np.testing.assert_allclose(server.strategy.state.model[name], a, rtol=1e-4, atol=1e-5)


@cache
def model_of(method: str, rule: str, *, lies: bool) -> np.ndarray:
    """Return the model of clients of which the last one lies, or is not there, under a rule."""
    sessions = toy_sessions([MemoryStore() for _ in range(CLIENTS)])
    honest = InProcessGrid({node: session for node, session in sessions.items() if node != LIAR}, CLIENTS)
    lie = trained(update=scaled(-8), gradient=scaled(-8))
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "catalogue.json").write_text(CATALOGUE.to_json())
        options: dict[str, Scalar] = {"federation__min_replies": 5, "catalogue": str(folder / "catalogue.json")}
        options |= {"local_steps": 12, "lr": 0.05, "federation__robust": rule, "federation__norm_bound": 0.0}
        grid = LyingGrid(sessions, LIAR, TRAIN, lie, CLIENTS) if lies else honest
        run(grid, configured(method, rounds=3, **options), folder)
        model, _ = RunDirectory(folder, "toy").load_model()
    return np.concatenate([model[name].ravel() for name in sorted(model)])


@pytest.mark.parametrize(
    ("method", "rule"),
    [*((m, r) for m in ("fedavg", "fedrule") for r in RULES), ("ifca", "median")],  # clusters are too small for Krum
)
def test_a_liar_moves_the_model_less_than_it_moves_the_mean(method: str, rule: str) -> None:
    by_mean = np.linalg.norm(model_of(method, "none", lies=True) - model_of(method, "none", lies=False))
    by_rule = np.linalg.norm(model_of(method, rule, lies=True) - model_of(method, rule, lies=False))
    assert by_rule < 0.5 * by_mean


@pytest.mark.parametrize(("rule", "needed"), [("median", 3), ("multi-krum", 5)])
def test_a_rule_needs_enough_replies(rule: str, needed: int) -> None:
    given: dict[str, Scalar] = {"federation.robust": rule, "federation.min-replies": needed - 1}
    assert f"federation.robust={rule} needs {needed} replies; set federation.min-replies={needed}" in refusal(given)


def test_a_median_of_named_rows_is_refused() -> None:
    rows: dict[str, Scalar] = {"task": "ratings", "method": "fedavg", "model": "paper", "tasks.ratings.items": "paper"}
    given: dict[str, Scalar] = {**rows, "federation.robust": "median", "federation.min-replies": 3}
    assert "does not apply to named rows; set federation.robust=multi-krum" in refusal(given)


def test_auto_is_the_geometric_median_of_updates_that_come_alone() -> None:
    noise: dict[str, Scalar] = {"privacy.unit": "client", "privacy.epsilon": 8.0, "privacy.accept-noise": True}
    for method, given in (("fedavg", {}), ("fedrule", {}), ("ridge", {}), ("fedavg", noise)):
        rule = parse({"task": "rules", "federation.robust": "auto", "method": method, **given}).robust
        assert (rule == "geometric-median") == (method == "fedavg" and not given)


@pytest.mark.parametrize(("clients", "like"), [(9, "none"), (10, "geometric-median")])
def test_auto_is_the_mean_of_fewer_than_ten_replies(clients: int, like: str, tmp_path: Path) -> None:
    bits = set[str]()
    for rule in ("auto", like):
        grid = InProcessGrid(toy_sessions([MemoryStore() for _ in range(clients)]), clients)
        config = configured("fedavg", rounds=1, federation__robust=rule, federation__min_replies=5)
        bits.add(run(grid, config, tmp_path / rule).model_sha256)
    assert len(bits) == 1
