"""Regret against the best fixed plan in hindsight, and the targets of wide arms."""

from pathlib import Path

import pytest

from studies.harness.results import Results
from studies.harness.row import About, Row, RowKey, Trial
from studies.ratings.planning import ONE_ROUND, compared, path_of, regret_text, regrets, wide_verdict
from studies.ratings.planning_figure import describe_planning, draw_planning, spending

CURVES = {
    "uniform-gaussian-1": (0.30, 0.31, 0.33, 0.36),
    "uniform18-gaussian-1": (0.30, 0.31, 0.34),
    "random_arm-gaussian-1": (0.30, 0.32, 0.37, 0.40),
    "bgtplanner-gaussian-1": (0.30, 0.29, 0.28),
    "bgtplanner-wide-gaussian-1": (0.30, 0.31),
}


def trial(curve: tuple[float, ...], **more: float) -> Trial:
    metrics = {"rmse": curve[-1], "delivered_rmse": min(curve), "rounds": float(len(curve)), "epsilon_spent": 1.0}
    return Trial({**metrics, **more}, {n: {"rmse": rmse} for n, rmse in enumerate(curve, 1)})


def row(name: str, *trials: Trial) -> Row:
    return Row(RowKey("ml", "paper", name), About(name), dict(enumerate(trials)))


ROWS = {name: row(name, trial(curve)) for name, curve in CURVES.items()}


def test_a_plan_that_has_stopped_keeps_its_model() -> None:
    assert path_of(ROWS["uniform18-gaussian-1"].trials[0], 5) == [0.30, 0.31, 0.34, 0.34, 0.34]


def test_regret_is_the_sum_of_missed_rewards() -> None:
    best, path = regrets(ROWS, "random_arm-gaussian-1", "gaussian-1", 4)[0]
    assert best == ONE_ROUND
    ours, theirs = CURVES["random_arm-gaussian-1"], (0.30,) * 4
    missed = [(theirs[t - 1] - theirs[t]) - (ours[t - 1] - ours[t]) for t in range(1, 4)]
    assert path == pytest.approx([0.0, missed[0], sum(missed[:2]), sum(missed)])


def test_a_planner_better_than_any_fixed_plan_has_negative_regret() -> None:
    text = regret_text(ROWS, {"bgtplanner-gaussian-1": "BGTplanner"}, "gaussian-1", 4)
    assert (
        text == "BGTplanner −.0200 after 4 rounds on 1 split; the best fixed plan was one round of the even split on 1"
    )


def test_planners_are_compared_on_splits_that_all_have() -> None:
    twice = row("bgtplanner-gaussian-1", *[trial(CURVES["bgtplanner-gaussian-1"])] * 2)
    even = row("uniform-gaussian-1", *[trial(CURVES["uniform-gaussian-1"])] * 2)
    rows = {**ROWS, "bgtplanner-gaussian-1": twice, "uniform-gaussian-1": even}
    keys = ("bgtplanner-gaussian-1", "random_arm-gaussian-1", "bgtplanner-wide-gaussian-1")
    assert regrets(rows, keys[0], "gaussian-1", 4).keys() == {0, 1}
    found = compared(rows, keys, "gaussian-1", 4)
    assert [(key, list(one)) for key, one in found.items()] == [(key, [0]) for key in keys]


def test_without_fixed_plans_there_is_no_regret() -> None:
    alone = {"bgtplanner-gaussian-1": ROWS["bgtplanner-gaussian-1"]}
    assert regrets(alone, "bgtplanner-gaussian-1", "gaussian-1", 4) == {}


@pytest.mark.parametrize(
    ("delivered", "own", "verdicts"),
    [
        (0.30, 0.31, ["holds", "holds"]),
        (0.30, 0.20, ["does not hold", "holds"]),
        (0.358, 0.4, ["holds", "does not hold"]),
    ],
)
def test_wide_arms_are_judged_by_the_delivered_model(delivered: float, own: float, verdicts: list[str]) -> None:
    wide, mean = row("wide", trial((0.5,), delivered_rmse=delivered)), row("own", trial((own,)))
    claims = wide_verdict(1.0, wide, ROWS["uniform-gaussian-1"], mean)
    assert [("holds" if claim.holds else "does not hold") for claim in claims] == verdicts
    assert len(wide_verdict(10.0, wide, ROWS["uniform-gaussian-1"], mean)) == 1


def test_the_share_of_the_budget_is_that_of_the_run() -> None:
    even = spending("uniform-gaussian-1", ROWS["uniform-gaussian-1"].trials[0])
    assert [share for share, _ in even] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert [rmse for _, rmse in even] == list(CURVES["uniform-gaussian-1"])
    wide = trial(CURVES["bgtplanner-wide-gaussian-1"])
    wide.curve[1]["spent"] = 0.4
    assert spending("bgtplanner-wide-gaussian-1", wide)[0] == (0.4, 0.30)


def test_the_figure_is_equal_byte_for_byte(tmp_path: Path) -> None:
    results = Results({}, {one.key: one for one in ROWS.values()})
    for name in ("a.svg", "b.svg"):
        draw_planning(results, "ml", tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "random arms +.1000" in describe_planning(results, "ml")
