"""Sums that other runs continue: every closed form finds the rows of its names again."""

from typing import Literal

import numpy as np
import pytest

from client.data.read import read_all
from common.arrays import Arrays
from common.config.parse import parse
from common.tasks.closed_form import NAMES, RowNames
from common.tasks.registry import TASKS, closed_form_of

CHOSEN = {"rules": "ease_triples", "sessions": "slist_items", "ratings": "ridge_chosen_items", "markets": "blend_items"}


def started(task: str, source: str) -> Arrays:
    """Return what is known before the first sum."""
    run = parse({"method": "ridge", "task": task}).task_run(TASKS[task], read_all(task, source).vocabulary)
    return closed_form_of(task).start(run)


def solved_with(task: str, ids: list[int]) -> Arrays:
    """Return what is solved once these ids are chosen."""
    pairs = {"ease_pairs": np.array(ids)} if task == "rules" else {}  # owners of devices have rows of their own
    return {**started(task, "demo"), CHOSEN[task]: np.array(ids), **pairs}


def shape_of(names: RowNames, solved: Arrays) -> int:
    """Return the number of rows of a table."""
    every = int(np.prod(names.lists(solved)))
    size = len(solved[names.chosen]) if names.chosen else every
    return {"": size, "unordered": size * (size + 1) // 2, "ordered": size**2}[names.pairs]


def test_every_closed_form_says_which_sums_last() -> None:
    forms = {task for task in TASKS if TASKS[task].closed_form}
    assert forms == {task for task in forms if closed_form_of(task).lasting} == CHOSEN.keys() | {"traffic"}


def test_autocovariances_are_added_lag_by_lag() -> None:
    form = closed_form_of("traffic")
    solved = started("traffic", "demo:0-2")
    sums = {name: np.full(a.shape, 2.0) for name, a in form.template(solved).items()}
    for name, a in form.add_named(solved, sums, form.name_sums(solved, sums)).items():
        np.testing.assert_array_equal(a, np.full(sums[name].shape, 4.0), err_msg=name)


@pytest.mark.parametrize("task", CHOSEN)
def test_rows_are_found_again_by_their_names(task: str) -> None:
    form, rng = closed_form_of(task), np.random.default_rng(0)
    before, after = solved_with(task, [1, 4, 7, 9, 20]), solved_with(task, [4, 5, 9, 30])
    for name, names in form.lasting.items():
        table = rng.normal(size=(shape_of(names, before), 2)) * (rng.random((shape_of(names, before), 1)) < 0.5)
        named = form.name_sums(before, {name: table})
        same = form.add_named(before, {name: table}, named)[name]
        np.testing.assert_allclose(same, 2 * table, err_msg=name)
        zeros = np.zeros((shape_of(names, after), 2))
        moved = form.name_sums(after, form.add_named(after, {name: zeros}, named))
        in_both = {4, 9} if names.chosen else {*range(10**6)}
        per_row = dict(zip(map(tuple, named[name + NAMES].tolist()), table[table.any(axis=1)].tolist(), strict=True))
        lists = names.lists(before)
        expected = {
            row: values
            for row, values in per_row.items()
            if {int(np.ravel_multi_index(part, lists)) for part in np.split(np.array(row), len(row) // len(lists))}
            <= in_both
        }
        found = dict(zip(map(tuple, moved[name + NAMES].tolist()), moved[name + "/values"].tolist(), strict=True))
        assert found == expected, name


@pytest.mark.parametrize("pairs", ["unordered", "ordered"])
def test_pairs_of_many_rows_keep_their_members(pairs: Literal["unordered", "ordered"]) -> None:
    names = RowNames(lambda solved: (10**6,), chosen="ids", pairs=pairs)
    solved = {"ids": np.arange(0, 10**6, 50)}
    rows = np.array(
        [0, 1, 2, 3, 199_989_999, 200_009_999] if pairs == "unordered" else [0, 1, 19_999, 20_000, 399_999_999]
    )
    found = names.read(solved, rows)
    np.testing.assert_array_equal(names.find(solved, found), rows)


def test_sums_without_rows_are_none() -> None:
    form = closed_form_of("sessions")
    solved = solved_with("sessions", [1, 2])
    named = form.name_sums(solved, {"slist_visited": np.zeros((432, 1)), "slist_gains": np.ones(5)})
    assert [name for name in named if name.endswith(NAMES)] == ["slist_visited/names"]
    assert named["slist_visited/names"].shape == (0, 1)
    np.testing.assert_array_equal(
        form.add_named(solved, {"slist_visited": np.ones((432, 1))}, named)["slist_visited"], 1
    )
