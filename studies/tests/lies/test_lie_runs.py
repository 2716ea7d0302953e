"""Runs of the study of lies: who is named, and what the lie does to the model and to the run's files."""

from pathlib import Path

import pytest

from server.record.folder import RunDirectory
from studies.harness.results import Results
from studies.harness.row import Trial
from studies.harness.store import Store
from studies.harness.study import Selection
from studies.lies import runs
from studies.lies.cases import HONEST, HONEST_SEEDS, LIE_SEEDS, ROUNDS, Case


@pytest.mark.parametrize("lie", ["3.3e38", "escapes in names", "silence"])
def test_a_run_names_the_liar_and_ends_as_without_it(lie: str, tmp_path: Path) -> None:
    honest, lied = (runs.measure(Case("ratings", "fedavg", one), 0, tmp_path).metrics for one in (HONEST, lie))
    assert honest == {**lied, "named": 0.0}
    assert (lied["named"], lied["mistaken"], lied["stained"], lied["rounds"]) == (1, 0, 0, ROUNDS)
    assert not [*tmp_path.iterdir()], "folders of runs are removed"


def test_an_escape_in_a_file_of_the_run_is_found(tmp_path: Path) -> None:
    folder = RunDirectory(tmp_path, "toy")
    folder.path.mkdir()
    (folder.path / "metrics.jsonl").write_text('{"refused": {"\\u001b]0;": ""}}')
    (folder.path / "result.json").write_text("{}")
    assert runs.count_stained(folder) == 1


def test_the_study_has_as_many_seeds_as_it_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "measure", lambda case, seed, folder: Trial({"quality": float(seed)}))
    store = Store(tmp_path, Results())
    runs.compute(Selection(sets=("traffic",), only=("fedstl/honest", "fedstl/loss")), store)
    assert {key.row: len(row.trials) for key, row in store.results.rows.items()} == {
        HONEST: HONEST_SEEDS,
        "loss": LIE_SEEDS,
    }
