"""Section on the signal of training: its runs parse, and a row that contradicts the threshold is named."""

import pytest

from common.config.parse import parse
from common.models import build_model, parameters
from common.privacy.signal import LEAST_SIGNAL, LEAST_SIGNAL_OF_MAGNITUDES
from common.tasks.registry import TASKS, demo_vocabulary
from studies.harness.results import Results
from studies.harness.row import RowKey, Trial
from studies.privacy.cases import SETTINGS
from studies.privacy.signal import NUMBERS, PROTOCOL, SignalSet, claims, points, section, signal_sets

pytestmark = pytest.mark.usefixtures("refused_noise")

RULES = next(one for one in SETTINGS if one.task == "rules")


def results_of(gains: dict[float, float]) -> Results:
    """Return results of rules under helpers with these gains over a floor of .5, by ε."""
    results, runs = Results(), next(one for one in signal_sets() if one.name == "rules")
    experiments = {one.key: one for one in runs.experiments(TASKS["rules"].trained)}
    for epsilon, gain in gains.items():
        name = RULES.row("helpers", epsilon)
        row = results.row(RowKey("rules", PROTOCOL, name))
        row.about.config = experiments[name].settings
        row.trials = {seed: Trial({RULES.metric: 0.5 + gain, RULES.floor: 0.5}) for seed in range(2)}
    return results


@pytest.mark.parametrize("runs", [*signal_sets()], ids=lambda one: one.name)
def test_every_row_is_a_run_with_noise_that_is_not_refused(runs: SignalSet) -> None:
    rows = [*runs.experiments(TASKS[runs.setting.task].trained)]
    assert len({one.key for one in rows}) == len(rows)
    for one in rows:
        config = parse({**one.settings, "run-id": "r", "seed": 0})
        assert config.privacy.accept_noise
        assert (config.method == "ridge") == (runs.name != runs.setting.task)


def test_the_page_has_the_sizes_of_the_models() -> None:
    for task, numbers in NUMBERS.items():
        run = parse({"task": task}).task_run(TASKS[task], demo_vocabulary(task))
        assert sum(a.size for a in parameters(build_model(TASKS[task], run)).values()) == numbers


def test_rows_are_listed_by_falling_signal() -> None:
    found = points(results_of({16.0: -0.1, 8192.0: 0.1, 512.0: -0.1}))
    assert [one.epsilon for one in found] == [8192.0, 512.0, 16.0]
    assert found[0].signal > LEAST_SIGNAL > found[1].signal > found[2].signal > 0
    text = "\n".join(section(results_of({16.0: -0.1})))
    assert "| rules, fedrule | noise of two helpers on sums | 16 |" in text


def test_a_start_that_ended_below_its_floor_breaks_the_claim() -> None:
    good, bad = (next(claims(points(results_of({8192.0: gain, 16.0: -0.1})))) for gain in (0.1, -0.1))
    assert good.holds
    assert not bad.holds
    assert (
        f"signal of at least {LEAST_SIGNAL:g} ended below its floor; the largest signal below a floor is " in good.text
    )
    assert LEAST_SIGNAL_OF_MAGNITUDES < LEAST_SIGNAL


def test_no_runs_make_no_section() -> None:
    assert not list(section(Results()))
