"""Lines of the ServerApp's log."""

from dataclasses import replace
from pathlib import Path

from server.record.events import Finish, RoundEvent, Start, Waiting, event_text

ROUND = RoundEvent(
    round=2, rounds=3, loss=0.5, metrics={"auc": 0.75}, seconds=1.25, answered=1, asked=2, bytes_down=1, bytes_up=1
)


def test_each_event_is_one_line() -> None:
    folder = Path("/runs/r1")
    start = Start(run="r1", method="fedavg", task="rules", model="default", seed=7, rounds=3)
    assert event_text(start, folder) == "run r1: fedavg on rules, 3 rounds, seed 7"
    assert event_text(replace(start, remark="few homes"), folder).endswith(", seed 7; few homes")
    assert event_text(ROUND, folder) == "round 2/3: 1/2 clients, 1.2 s, train loss 0.500, auc 0.750"
    assert event_text(Finish(status="completed"), folder) == "run completed; result in /runs/r1/result.json"
    failed = Finish(status="failed", reason="no clients")
    assert event_text(failed, folder) == "run failed: no clients; result in /runs/r1/result.json"
    assert event_text(Waiting(wanted=2, until=0.0), folder) == ""
