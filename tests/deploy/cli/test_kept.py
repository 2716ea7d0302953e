"""What clients keep of finished runs is found by their data."""

import os
from pathlib import Path

import numpy as np

from client.session import MODEL
from deploy.cli.kept import newest_kept
from tests.deploy.cli.sensors import HOURLY, take_part


def test_the_model_is_the_shared_one_with_the_client_s_own_head(tmp_path: Path, table: Path) -> None:
    own = take_part(tmp_path / "state", table, "fedrep", "r1")
    kept = newest_kept("traffic", str(table), "", [tmp_path / "nowhere", tmp_path / "state"])
    assert kept is not None
    assert (kept.run, kept.config.method, kept.names) == ("r1", "fedrep", HOURLY)
    assert kept.model.keys() == own.keys()
    for name, values in own.items():
        np.testing.assert_array_equal(kept.model[name], values)


def test_it_is_the_newest_run_or_the_one_named_and_of_these_data_and_this_task_only(
    tmp_path: Path, table: Path
) -> None:
    roots = [tmp_path / "state"]
    for age, run in enumerate(("new", "old")):
        take_part(roots[0], table, "fedavg", run)
        [path] = roots[0].glob(f"*/*/{run}/{MODEL}")
        os.utime(path, (1e9 - age, 1e9 - age))
    found = {run: newest_kept("traffic", str(table), run, roots) for run in ("", "old", "other")}
    assert {name: kept and kept.run for name, kept in found.items()} == {"": "new", "old": "old", "other": None}
    assert newest_kept("rules", str(table), "", roots) is None
    table.write_text(table.read_text() + "2024-01-22T00:00,north,1\n")
    assert newest_kept("traffic", str(table), "", roots) is None
