"""Every method, killed at any step of its task and resumed, ends with the model of a run that was not killed."""

import random
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from signal import SIGKILL

import pytest

from client.data.dataset import AnyDataset
from common.config.run import RunConfig
from common.methods.planners import method_names
from common.options import Scalar
from deploy.simulation.state import KeptState, simulate_measured
from server.record.result import Result
from tests.contracts.test_lies_in_tasks import TASKS, configuration, parts
from tests.support.kills import killed_at
from tests.support.toys import toy_dataset

OPTIONS: dict[str, dict[str, Scalar]] = {
    "fedadam": {"moments": "persist"},
    "fedrule": {"federation__cohort": 0.7, "federation__min_replies": 2},
    "fedrep": {"privacy__unit": "record", "privacy__epsilon": 8.0},
    "ifca": {"clusters": 2, "privacy__unit": "client", "privacy__epsilon": 8.0},
}
STATELESS = ("fedavg", "fedprox")
SEED, MOMENTS = 7, 2


def case(method: str, settings: Callable[..., RunConfig]) -> tuple[RunConfig, Sequence[AnyDataset]]:
    """Return a configuration of three rounds at most and the clients' data; homes in methods of all tasks."""
    if method in TASKS:
        config = configuration(method)
        return config.model_copy(update={"rounds": min(config.rounds, 3)}), parts(TASKS[method])[:3]
    return settings(method, **OPTIONS.get(method, {})), [toy_dataset(k) for k in (1, 2, 3)]


@pytest.mark.parametrize("method", method_names())
def test_a_simulation_killed_at_any_step_ends_with_the_bits_of_an_unbroken_one(
    method: str, settings: Callable[..., RunConfig], tmp_path: Path
) -> None:
    config, data = case(method, settings)
    rng = random.Random(method)
    together = rng.choice([1, 3])

    def simulated(runs: Path, *, resume: bool = False) -> Result:
        changed = config.model_copy(update={"resume": resume})
        return simulate_measured(changed, data, runs, together=together, noise_seed=SEED, state=KeptState())[0]

    with killed_at() as steps:
        through = simulated(tmp_path / "through")
    created = steps.names.index(
        "replace"
    )  # the run's configuration; before, nodes are asked who helps, and nothing is stored
    begun = 1 + steps.names.index("push_messages", created)
    for last in rng.sample(range(begun, len(steps.names)), MOMENTS):
        runs = tmp_path / str(last)
        with killed_at(last):
            simulated(runs)
        resumed = simulated(runs, resume=True)
        place = f"together {together}, killed before {steps.names[last - 1]}, step {last}"
        assert (resumed.rounds_done, resumed.model_sha256) == (through.rounds_done, through.model_sha256), place
        if method in STATELESS or method == "fedrule":
            assert (runs / config.run_id / "clients").exists() == (method in STATELESS), f"{place}: removed at the end"


def test_a_process_is_killed_by_its_system(settings: Callable[..., RunConfig], tmp_path: Path) -> None:
    """SIGKILL at a moment that nobody chose, twice in one run."""
    config, data = settings("fedrule", rounds=6), [toy_dataset(k) for k in (1, 2, 3)]
    lines = tmp_path / "killed" / config.run_id / "metrics.jsonl"

    def simulated(runs: Path, *, resume: bool = False) -> Result:
        return simulate_measured(config.model_copy(update={"resume": resume}), data, runs, together=1)[0]

    def done() -> int:
        return lines.read_bytes().count(b'"event":"round"') if lines.exists() else 0

    for kill in (1, 2):
        before = done()
        process = get_context("fork").Process(
            target=simulated, args=(tmp_path / "killed",), kwargs={"resume": kill > 1}
        )
        process.start()
        while done() <= before and process.is_alive():
            time.sleep(0.01)
        process.kill()
        process.join()
        assert process.exitcode == -SIGKILL
    resumed = simulated(tmp_path / "killed", resume=True)
    assert (resumed.rounds_done, resumed.model_sha256) == (6, simulated(tmp_path / "through").model_sha256)
