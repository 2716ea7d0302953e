"""Formulas that users write: faults with their place, and an upper limit on the work that a formula causes."""

import time

import pytest

from common.errors import ConfigError
from common.logic.parser import parse, read_formula

NAMES = ("volume", "occupancy")

MANY = " & ".join(f"F[{2 * k},{2 * k + 1}] (volume >= {k})" for k in range(10))


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("G[0,5](volume <= 400 & F[6,10](volume >= 900)", 46, "expected '\\)', found 'end'"),
        ("G[0,5](flow <= 400)", 8, "the federation measures volume, occupancy; the formula names 'flow'"),
        ("volume <= 4 & 2*speed - volume <= 1", 17, "names 'speed'"),
        ("G[0,5](volume <= 4) & G[20,24](volume >= 9)", 23, "has 25 steps, but a forecast has 24"),
        ("G[0,5](volume <= 400) & F[3,5](volume >= 900)", 25, "no trace can satisfy"),
        ("volume <= 3 & G[2,3](volume >= 5 & volume <= 4)", 36, "at step 2, volume from 5.0 to 4.0"),
        ("volume <= 3 | volume <= 2 & volume >= 4", 1, None),
        ("volume <= 3 & volume > 3", 15, "no trace can satisfy"),
        ("G[0,1](volume + occupancy <= 3) & volume >= 2", 35, "bound at step 0 through"),
        (f"F[0,1]({MANY})", 1, "more than the cap of 256 allows"),
        ("(" * 60 + "volume <= 1" + ")" * 60, 34, "nested too deeply"),
        ("!" * 200 + "volume <= 1", 99, "nested too deeply"),
        ("volume <= 1 &" * 400 + "volume <= 1", 4001, "has 5,211 characters"),
    ],
)
def test_faults_name_their_column(text: str, column: int, problem: str | None) -> None:
    if problem is None:
        assert read_formula(text, 24, NAMES) == parse(text), "one alternative suffices"
        return
    with pytest.raises(ConfigError, match=f"column {column}: .*{problem}"):
        read_formula(text, 24, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "G[0,1]" * 23 + "volume <= 1",
        "F[0,1]" * 23 + "volume <= 1",
        "G[0,1]F[0,1]" * 11 + "volume <= 1",
        f"F[0,1]({MANY})",
        f"volume <= 0 | ({MANY})",
        " & ".join(f"!((volume <= {k}) U[0,{k}] (volume >= {k + 5}))" for k in range(1, 20)),
    ],
)
def test_a_hostile_formula_costs_little_before_it_is_refused(text: str) -> None:
    begin = time.thread_time()
    with pytest.raises(ConfigError, match="alternatives"):
        read_formula(text, 24, NAMES)
    assert time.thread_time() - begin < 3, "a quiet machine takes half a second"


def test_any_variable_is_accepted_before_the_data_are_known() -> None:
    assert read_formula("G[0,2] (speed <= 3)", 24) == parse("G[0,2] (speed <= 3)")
