"""Answers by a baseline that is better than the model on a client's held-out data."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from client.tasks.lists import LEARNT
from common.config.parse import flatten, parse
from common.models import parameters
from common.options import Scalar
from common.tasks.registry import TASKS, demo_vocabulary
from deploy.cli.app import app
from deploy.tasks.registry import DEPLOY_TASKS
from server.record.folder import RunDirectory
from tests.deploy.pages.test_summary import RESULT
from tests.support.build import task_model
from tests.support.exports import untrained

NOISE: dict[str, Scalar] = {"privacy.unit": "client", "privacy.epsilon": 8.0}


def finish(task: str, run: str, options: dict[str, Scalar]) -> None:
    """Store a finished run whose model is far worse than the baseline."""
    config = parse({"method": "fedavg", "task": task, "run-id": run, "rounds": 1, **options})
    vocabulary = demo_vocabulary(task)
    folder = RunDirectory(Path("runs"), run)
    folder.create(flatten(config), json.loads(vocabulary.to_json()))
    model = {
        name: a + np.float32(9 * name.endswith("bias"))
        for name, a in parameters(task_model(config, vocabulary)).items()
    }
    folder.save_model(model, {"method": "fedavg", "round": "1"})
    folder.write_result(replace(RESULT, task=task, run=run))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("command", "task", "options", "baseline", "is_validated"),
    [
        ("recommend", "sessions", {"model": "paper", "tasks.sessions.hidden": 4}, "own history", False),
        ("forecast", "traffic", {"tasks.traffic.hidden": 3}, "own ridge regression", True),
    ],
)
def test_the_baseline_answers_with_noise_and_without_where_validation_data_prefer_it(
    command: str, task: str, options: dict[str, Scalar], baseline: str, is_validated: bool
) -> None:
    def answer(*words: str) -> tuple[str, bool]:
        done = CliRunner().invoke(app, [command, "--data", "demo:0-3", "--json", *words])
        assert done.exit_code == 0, done.exception
        return done.stdout, f"{baseline} answers" in done.stderr.replace("\n", " ")

    finish(task, "noised", options | NOISE)
    (own, is_own), (chosen, by_own) = answer(), answer("--checkpoint", "final")
    finish(task, "exact", options)
    exact, without_noise = answer()
    assert (is_own, by_own, without_noise) == (True, False, is_validated)
    assert own != chosen
    assert (own.replace("noised", "exact") == exact) is is_validated


@pytest.mark.parametrize("task", ["rules", "sessions"])
def test_the_baseline_shows_only_what_the_client_has_used(task: str) -> None:
    run = untrained({"task": task, "method": "fedavg", "model": "paper"}, "demo:0-9")
    query = dict.fromkeys(("user", "diverse", "session", "test", "exclude", "only", "seen"), "")
    answering = DEPLOY_TASKS[task].answer
    assert answering is not None
    for unit in run.read("").units:
        asked = {**query, "user": unit.name}
        own = answering(replace(run, baseline=lambda _: next(iter(TASKS[task].baselines))), asked, 5)
        assert all(row["why"] != LEARNT for row in own.rows)
        assert len(own.notes) == 1 + len(answering(run, asked, 5).notes)
        assert own.rows or own.empty
