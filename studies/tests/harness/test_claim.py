"""Comparisons are made on the seeds that both rows have."""

import pytest

from studies.harness.claim import Claim, Comparison, compare
from studies.harness.row import mean_sd
from studies.harness.table import Table
from tests.support.study_rows import row


def test_a_comparison_uses_common_seeds() -> None:
    found = compare(row("a", {0: 0.1, 1: 0.5, 2: 0.0}), row("b", {0: 0.3, 1: 0.4}), "loss")
    assert found is not None
    assert found.differences == pytest.approx((-0.2, 0.1))
    assert (found.won, found.seeds) == (1, 2)
    assert compare(row("a", {0: 0.1}), row("b", {1: 0.1}), "loss") is None


def test_higher_wins_where_higher_is_better() -> None:
    found = Comparison((0.3, 0.1, 0.2), (0.2, 0.3, 0.2), higher_is_better=True)
    assert found.won == 1
    assert found.sentence("AUC").startswith("higher AUC in 1 of 3 seeds (0.200 ± 0.100 against 0.233 ± 0.058)")


def test_a_comparison_in_words() -> None:
    assert Comparison((0.1, 0.3), (0.0, 0.0), higher_is_better=True).text() == "+0.200 ± 0.141, 2/2"
    assert Comparison((0.1,), (0.2,)).text(1) == "−0.1, 1/1"


def test_a_claim_states_its_verdict() -> None:
    assert str(Claim("loss ≤ 0.2: 0.1", holds=True)) == "loss ≤ 0.2: 0.1, holds."
    assert str(Claim("loss ≤ 0.2: 0.3", holds=False)) == "loss ≤ 0.2: 0.3, **does not hold**."


def test_mean_and_standard_deviation() -> None:
    assert mean_sd([1.0, 2.0], 2) == "1.50 ± 0.71"
    assert mean_sd([0.5, 0.5], 1, scale=100) == "50.0 ± 0.0"
    assert mean_sd([0.5, 0.5], 1, shows_zero=False) == mean_sd([0.5], 1) == "0.5"
    assert mean_sd([], 1) == ""


def test_a_table_without_its_empty_columns() -> None:
    table = Table(["a", "b", "c"], [["1", "", ""], ["2", "", "3"]])
    assert "\n\n| a | c |\n| --- | --- |\n| 1 |  |\n| 2 | 3 |\n\n" in str(table.without_empty_columns())


def test_a_table_is_folded_below_its_columns() -> None:
    first, summary, *_, last = str(Table(["method", "a < b", "c"], [["x", "1", "2"]])).splitlines()
    assert first == '<details markdown="1">'
    assert summary == "<summary>Table of 1 row: a &lt; b · c</summary>"
    assert last == "</details>"
