"""Two readings of the published seconds: of one client's formula, or of all clients."""

import pytest

from studies.speed import stl_inference
from studies.speed.stl_inference import about, run_of


def test_both_ratios_follow_from_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's .0032 s for one formula of template 1, against .001 s for a batch of 500 clients."""
    monkeypatch.setattr(stl_inference, "seconds", lambda *_: 0.001)
    found = run_of("1 operational range", lambda over: over, 1, 500, 1)
    assert (found["batch"], found["a_client"]) == (0.001, pytest.approx(2e-6))
    assert (found["times"], found["times_undivided"]) == (pytest.approx(1600), pytest.approx(3.2))


def test_the_sentence_states_both_readings() -> None:
    sentence = about([{"times": 350.0, "times_undivided": 0.7}, {"times": 50_000.0, "times_undivided": 100.0}], 500)
    assert "by its 500 clients: 350 to 50,000." in sentence
    assert "0.7 to 100.0, 50 or more in 1 of 2 cells" in sentence
