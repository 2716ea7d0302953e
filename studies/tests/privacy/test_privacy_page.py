"""The page on privacy noise states where a default is below its floor, and its rows are runs that parse."""

from pathlib import Path

import pytest

from common.config.parse import parse
from common.tasks.registry import TASKS
from studies.harness.results import Results
from studies.harness.row import Trial
from studies.privacy.cases import EPSILONS, NO_NOISE, SETTINGS, Setting
from studies.privacy.figures import Figures
from studies.privacy.headline import HEADLINE
from studies.privacy.page import claim_of, page, used_claim_of
from studies.privacy.runs import is_outdated

RULES, TRAFFIC = (next(one for one in SETTINGS if one.task == task) for task in ("rules", "traffic"))


def results_of(setting: Setting, gain: float) -> Results:
    """Return results in which every run is that much better than its floor of 0.5, on two seeds."""
    results, value = Results(), 0.5 + gain if setting.higher else 0.5 - gain
    for name in (NO_NOISE, *(setting.row(p, e) for p in setting.protections for e in EPSILONS)):
        results.row(setting.key(name)).trials = {
            seed: Trial({setting.metric: value, setting.floor: 0.5}) for seed in range(2)
        }
    return results


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.task)
def test_every_row_is_a_configuration_of_the_product_with_the_task_s_own_floor(setting: Setting) -> None:
    spec = TASKS[setting.task]
    rows = setting.experiments(spec.trained)
    assert len({one.key for one in rows}) == len(rows) == 1 + len(EPSILONS) * len(setting.protections)
    for one in rows:
        config = parse({**one.settings, "run-id": "r", "seed": 0})
        assert config.model == "default"
        noised = config.privacy.unit != "none"
        assert noised == (one.key != NO_NOISE)
    assert spec.comparison is not None
    assert spec.objective.metric in (setting.metric, f"{setting.metric}_shown")
    assert spec.higher_is_better == setting.higher
    assert spec.simple[setting.metric] == setting.floor


@pytest.mark.parametrize("setting", [RULES, TRAFFIC], ids=["higher", "lower"])
def test_a_default_above_its_floor_satisfies_the_claim(setting: Setting) -> None:
    assert claim_of(Figures(results_of(setting, 0.1), setting)).holds
    verdict, figure = HEADLINE.section(results_of(setting, 0.1), "privacy")
    assert f"{setting.task.capitalize()} gain with own noise of each client from ε = 1" in verdict
    assert figure.endswith("](assets/privacy.svg)")


def test_one_cell_below_the_floor_is_named() -> None:
    results = results_of(RULES, 0.1)
    for trial in results.row(RULES.key("local-2")).trials.values():
        trial.metrics["hr20"] = 0.2
    claim = claim_of(Figures(results, RULES))
    assert not claim.holds
    assert claim.text.endswith("(own noise of each client, at ε = 2 by up to −0.300)")
    verdict, _ = HEADLINE.section(results, "privacy")
    assert "own noise of each client from ε = 4, with noise of two helpers on sums from ε = 1" in verdict


def test_what_clients_use_is_judged_by_itself_where_it_was_measured() -> None:
    results = results_of(RULES, -0.2)
    for name, used in (("local-2", 0.5), ("helpers-8", 0.4)):
        for trial in results.row(RULES.key(name)).trials.values():
            trial.metrics[RULES.used] = used
    text = "\n".join(page(results, "made"))
    assert "0.300 ± 0.000 (−0.200); used 0.500 (+0.000)" in text
    claim = used_claim_of(Figures(results, RULES))
    assert not claim.holds
    assert claim.text.endswith("(noise of two helpers on sums, at ε = 8 by up to −0.100)")
    assert (
        "was not measured for own noise of each client, at ε = 1, 4, 8; noise of two helpers on sums, at ε = 1, 2, 4"
        in text
    )


def test_rows_without_validation_data_are_run_again() -> None:
    row = results_of(RULES, -0.2).row(RULES.key("local-1"))
    assert is_outdated(RULES, row)
    row.about.config[RULES.validation_key] = RULES.validation
    assert not is_outdated(RULES, row)


def test_a_loss_within_the_smallest_effect_is_none() -> None:
    assert claim_of(Figures(results_of(RULES, -RULES.smallest / 2), RULES)).holds


def test_rows_that_were_not_run_are_named_and_a_task_without_runs_is_left_out(tmp_path: Path) -> None:
    results = results_of(TRAFFIC, 0.1)
    del results.rows[TRAFFIC.key("local-4")]
    text = "\n".join(page(results, "made"))
    assert "| own noise of each client | 0.400 ± 0.000 (+0.100) | 0.400 ± 0.000 (+0.100) | not run |" in text
    assert "## Rules" not in text
    HEADLINE.draw(results, tmp_path / "one.svg")
    HEADLINE.draw(results, tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
