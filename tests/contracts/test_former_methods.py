"""A method written for release 0.1 trains; a warning names the change that it needs."""

from pathlib import Path

import numpy as np
import pytest

from client.api import ClientMethod, FedAvgTrainer
from common.api import Arrays, MethodSpec, sub
from deploy.simulation.grid import simulate
from server.api import Collected, OptimizerState, RoundParts, RoundStrategy, ServerMethod
from tests.support.plugins import Odd, install
from tests.support.toys import CATALOGUE, configured, toy_dataset


class MeanOfReplies(RoundStrategy):
    """θ ← θ − mean of Δ_k over single replies, as a package of 0.1 has it."""

    def __init__(self, options: Odd, parts: RoundParts) -> None:
        super().__init__(parts)
        self.options = options

    def update(self, state: OptimizerState, model: Arrays, collected: Collected) -> tuple[Arrays, OptimizerState]:
        assert 1 <= self.next_round[0] <= self.next_round[1]
        assert sorted(collected.steps) == collected.names
        step = {n: np.mean([reply.train.update[n] for reply in collected.replies], axis=0) for n in model}
        for name, a in (mean := collected.mean_update()).items():
            np.testing.assert_allclose(a, step[name], rtol=1e-5, atol=1e-7)
        return sub(model, mean), {"last": {"round": np.array(self.next_round[0])}}


def test_a_former_strategy_trains_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = MethodSpec(Odd, "A mean")
    sides = {"": spec, ".server": ServerMethod(spec, MeanOfReplies), ".client": ClientMethod(spec, FedAvgTrainer)}
    install(monkeypatch, {f"fedloom.methods{layer}": {"odd": found} for layer, found in sides.items()})
    (tmp_path / "catalogue.json").write_text(CATALOGUE.to_json(), "utf-8")
    quick = {"rounds": 2, "catalogue": str(tmp_path / "catalogue.json")}
    with pytest.warns(DeprecationWarning, match=r"MeanOfReplies is a RoundStrategy; subclass server\.api\.Method"):
        former = simulate(configured("odd", **quick), toy_dataset(3), tmp_path / "former")
    plain = simulate(configured("fedavg", **quick), toy_dataset(3), tmp_path / "plain")
    assert former.metrics == pytest.approx(plain.metrics, rel=1e-5)
