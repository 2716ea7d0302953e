"""Runs that start from a finished run: sums and models go on, names grow, misfits are refused."""

from pathlib import Path

import numpy as np

from client.tasks.rules.data.homes import Home, Homes
from common.config.run import RunConfig
from common.options import Scalar
from common.tasks.rules import ease
from common.tasks.rules.vocabulary import RuleCatalogue
from deploy.simulation.grid import simulate
from server.record.folder import RunDirectory
from server.record.journal import restore
from server.record.result import Result
from server.round.state import SUMS, RunState
from tests.support.toys import CATALOGUE, configured, toy_homes

HOMES = toy_homes(16)


def named(
    folder: Path,
    run: str,
    method: str = "ridge",
    parent: str = "",
    catalogue: RuleCatalogue = CATALOGUE,
    **options: Scalar,
) -> RunConfig:
    """Return the configuration of a run whose vocabulary is written to the folder."""
    path = folder / f"{run}.json"
    path.write_text(catalogue.to_json(), "utf-8")
    chosen = {"strength": 1.0} if method == "ridge" else {"rounds": 2}
    config = configured(method, **{**chosen, **options}, catalogue=str(path))
    return config.model_copy(update={"run_id": run, "start_from": parent})


def state(folder: Path, run: str) -> RunState:
    checkpoint = RunDirectory(folder, run).checkpoints.load_latest()
    assert checkpoint is not None
    return restore(checkpoint)


def train(
    folder: Path, config: RunConfig, homes: tuple[Home, ...] = HOMES, catalogue: RuleCatalogue = CATALOGUE
) -> Result:
    return simulate(config, Homes(homes, catalogue), folder)


def pairs(folder: Path, run: str) -> dict[tuple[int, ...], float]:
    """Return names of a pair of triples -> its sum."""
    sums = state(folder, run).memory[SUMS]
    rows = zip(sums[f"{ease.GRAM}/names"].tolist(), sums[f"{ease.GRAM}/values"].tolist(), strict=True)
    return {tuple(names): value for names, [value] in rows}


def test_a_chain_of_sums_equals_one_run_over_all_clients(tmp_path: Path) -> None:
    train(tmp_path, named(tmp_path, "whole"))
    train(tmp_path, named(tmp_path, "first"), HOMES[:7])
    result = train(tmp_path, named(tmp_path, "second", parent="first"), HOMES[7:])
    whole, chained = pairs(tmp_path, "whole"), pairs(tmp_path, "second")
    assert whole.keys() == chained.keys()
    assert max(abs(whole[key] - chained[key]) for key in whole) < 1e-9
    expected, found = state(tmp_path, "whole").statics, state(tmp_path, "second").statics
    np.testing.assert_array_equal(found[ease.TRIPLES], expected[ease.TRIPLES])
    np.testing.assert_allclose(found[ease.VALUES], expected[ease.VALUES], atol=1e-6)
    assert result.parent is not None
    assert (result.parent.run, result.parent.weight) == ("first", 1.0)
    assert result.parent.model_sha256 == RunDirectory(tmp_path, "first").result().model_sha256
    assert "run first, from which this one started: its model holds what its clients sent, without noise" in " ".join(
        result.privacy.uncovered
    )
