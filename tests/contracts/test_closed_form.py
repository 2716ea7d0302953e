"""A method in closed form is a method like any other: statistics once, a solve at the server.

Its sum has the same value over single replies, blocks of simulated clients, hubs, and secure sums.
"""

from pathlib import Path

import numpy as np
import pytest

from common.arrays import Arrays
from common.contribution import UPDATE, Contribution
from deploy.simulation import blocks
from deploy.simulation.grid import simulate
from server.api import Groups, Method, RoundContext, ServerMethod
from server.record.folder import RunDirectory
from tests.support.closed_form import CLIENT, SPEC, STATISTIC, LabelMoments
from tests.support.hubs import of_hub
from tests.support.plugins import install
from tests.support.sum_runs import POLICY, SumFederation, summed
from tests.support.toys import CATALOGUE, configured, toy_dataset

SOLVED = "solved"
"""Group of the method's state with its solution."""


class MomentsStep(Method):
    """Mean and variance of all labels, from the sums of 1, y and y²."""

    def __init__(self, options: LabelMoments) -> None:
        pass

    def template(self, at: RoundContext, model: Arrays) -> Arrays:
        return {STATISTIC: np.zeros(3, np.float32)}

    def update(self, at: RoundContext, state: Groups, model: Arrays, total: Contribution) -> tuple[Arrays, Groups]:
        n, first, second = total.sums[UPDATE][STATISTIC]
        mean = first / n
        return model, {SOLVED: {"moments": np.array([mean, second / n - mean**2])}}


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ServerMethod(SPEC, MomentsStep)
    groups = {"fedloom.methods": SPEC, "fedloom.methods.client": CLIENT, "fedloom.methods.server": server}
    install(monkeypatch, {group: {SPEC.name: found} for group, found in groups.items()})


def solution(folder: Path) -> list[float]:
    """Return mean and variance in the newest checkpoint of the run `toy`."""
    checkpoint = RunDirectory(folder, "toy").checkpoints.load_latest()
    assert checkpoint is not None
    found: list[float] = checkpoint.groups[SOLVED]["moments"].tolist()
    return found


def in_blocks(folder: Path, together: int) -> list[float]:
    """Return the solution of a simulation whose vocabulary is in its folder."""
    folder.mkdir()
    (folder / "catalogue.json").write_text(CATALOGUE.to_json(), "utf-8")
    config = configured(SPEC.name, rounds=1, catalogue=str(folder / "catalogue.json"))
    simulate(config, toy_dataset(8), folder, together=together)
    return solution(folder)


def test_blocks_of_simulated_clients_have_the_sum_of_single_replies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mean, variance = in_blocks(tmp_path / "single", 1)
    assert 0 < mean < 1
    assert variance == pytest.approx(mean * (1 - mean), rel=1e-6), "labels are 0 and 1"
    monkeypatch.setattr(blocks, "FOLDED_BYTES", 0)
    assert in_blocks(tmp_path / "blocks", 4) == pytest.approx([mean, variance], rel=1e-6)


def test_hubs_have_the_sum_of_single_replies(tmp_path: Path) -> None:
    found = {}
    for answer in ("sums", "replies"):
        found[answer] = solution(
            of_hub(tmp_path / answer, SPEC.name, {"methods": (SPEC.name,)}, rounds=1, federation__answer=answer)
        )
    assert found["sums"] == pytest.approx(found["replies"], rel=1e-6)


def test_a_secure_sum_has_the_solution_of_plaintext(tmp_path: Path) -> None:
    found = {}
    for trust in ("helpers", "local"):
        folder = tmp_path / trust
        SumFederation(folder, policy=POLICY.model_copy(update={"methods": (SPEC.name,)})).run(
            summed(SPEC.name, trust, rounds=1)
        )
        found[trust] = solution(folder)
    assert found["helpers"] == pytest.approx(found["local"], rel=1e-5)
