"""Sizes, times and privacy in words."""

import pytest

from deploy.report.words import duration, first_line, privacy, size
from server.events import Privacy


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (412_300, "412 kB"),
        (99_960, "100 kB"),
        (2_500_000, "2.5 MB"),
        (3e15, "3000 TB"),
    ],
)
def test_size(count: float, said: str) -> None:
    assert size(count) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.418, "0.42 s"), (12.64, "12.6 s"), (185, "3 min 05 s"), (3599.7, "1 h 00 min"), (7620, "2 h 07 min")],
)
def test_duration(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_privacy_with_a_bound_names_unit_delta_and_gaps() -> None:
    statement = Privacy(unit="record", mechanism="DP-SGD", epsilon_spent_max=3.14159, delta=1e-5, uncovered=["counts"])
    assert privacy(statement) == "ε ≤ 3.14, δ = 1e-05 per record, by DP-SGD. Not covered: counts."


def test_no_privacy_is_said_plainly() -> None:
    statement = Privacy(unit="none", mechanism="", epsilon_spent_max=None, delta=None)
    assert privacy(statement).startswith("No differential privacy")


def test_a_stack_trace_is_cut_to_its_first_line() -> None:
    assert first_line("  boom\n  File x") == "boom"
    assert first_line("x" * 200) == "x" * 159 + "…"
