"""The cost model recovers the coefficients of exact runs, and the page is that of the stored runs."""

import pytest

from studies.speed.cost_model import MARKS, PAGE, CostModel, fit, section, stored


def run_of(clients: int, seconds: float) -> dict[str, float]:
    return {"clients": clients, "trained": clients, "ms_cpu_per_update": 1000 * seconds / clients}


def test_exact_runs_give_their_coefficients() -> None:
    exact = CostModel(0.2, 0.06, 0.0004)
    found = fit([run_of(n, exact.seconds(n)) for n in (10, 100, 1000, 10000)], 0.06)
    assert found == pytest.approx(exact)
    assert found.seconds(1000, 8, 2) == pytest.approx(0.2 + 0.06 * 8 + 0.0004 * 500)


def test_small_runs_count_as_much_as_large_ones() -> None:
    model = fit([run_of(10, 0.1), run_of(10, 0.2), run_of(10000, 4.0)], 0.0)
    assert 0.1 < model.seconds(10) < 0.2
    assert model.seconds(10000) == pytest.approx(4.0, rel=0.01)


def test_the_page_has_the_section_of_the_stored_runs() -> None:
    text = PAGE.read_text("utf-8")
    assert text.partition(MARKS[0])[2].partition(MARKS[1])[0].strip() == section(*stored())
