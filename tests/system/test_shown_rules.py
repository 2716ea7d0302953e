"""Lists of rules that the demo homes see hit at least as many held-out rules as the raw ranking."""

import pytest

from tests.system.desk import NETWORK, Desk

pytestmark = pytest.mark.system


def test_ten_shown_rules_hit_no_fewer_held_out_rules_than_the_raw_ranking(desk: Desk) -> None:
    options = ("--data", "demo:0-400", *NETWORK, "--rounds", "30", "--no-alone", "--set", "evaluate-every=30")
    run = desk.start("simulate", *options, "--json")
    assert run.end() == 0, run.error()
    metrics = run.result()["metrics"]
    assert metrics["hr10_shown"] >= metrics["hr10"] > 0.3
