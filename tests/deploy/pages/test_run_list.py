"""Run list and details of the live page."""

import fcntl
import json
import time
from pathlib import Path
from typing import Any

from deploy.pages.live_data import RunList, summarize
from server.record.events import Finish
from tests.support.run_folders import MakeRun
from tests.support.ui import a_round, a_start, ask, write_run


def runs(root: Path, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ask(root, "/api/runs", query).body)
    return found


def test_a_completed_run_shows_its_headline(tmp_path: Path) -> None:
    write_run(
        tmp_path, "r1", [a_start(fingerprint="f", split="test"), a_round(1), a_round(9), Finish(status="completed")]
    )
    [run] = runs(tmp_path)
    assert (run["id"], run["status"], run["rounds_done"], run["rounds"]) == ("r1", "completed", 9, 9)
    assert (run["metric"], run["value"]) == ("auc", "0.944")
    assert run["group"] == "rules|f|test|0"


def test_a_failed_run_shows_its_reason(tmp_path: Path) -> None:
    write_run(tmp_path, "r1", [a_start(), Finish(status="failed", reason="no quorum\nTraceback")])
    [run] = runs(tmp_path)
    assert (run["status"], run["reason"]) == ("failed", "no quorum")


def test_a_run_without_process_is_stopped_and_a_locked_one_running(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "r1", [a_start(), a_round(1)])
    assert [run["status"] for run in runs(tmp_path)] == ["stopped"]
    with folder.lock():
        assert [run["status"] for run in runs(tmp_path)] == ["running"]
    assert [run["status"] for run in runs(tmp_path)] == ["stopped"]
    (folder.path / ".lock").unlink()
    folder.append(a_round(2, time=time.time()))
    assert [run["status"] for run in runs(tmp_path)] == ["running"]


def test_looking_at_a_run_writes_nothing(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "r1", [a_start(), a_round(1)])
    before = {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))}
    for path in ("/api/runs", "/api/runs/r1", "/api/runs/r1/examples", "/"):
        ask(tmp_path, path)
    assert {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))} == before
    with (folder.path / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_resumed_run_is_not_completed(tmp_path: Path) -> None:
    events = [a_start(), a_round(9), Finish(status="completed"), a_start(rounds=20, time=time.time())]
    write_run(tmp_path, "r1", events)
    assert runs(tmp_path)[0]["status"] == "running"


def test_the_list_is_limited_and_newest_first(tmp_path: Path) -> None:
    for k in range(5):
        write_run(tmp_path, f"r{k}", [a_start(f"r{k}")])
        time.sleep(0.01)
    assert [run["id"] for run in runs(tmp_path, "limit=2")] == ["r4", "r3"]
    assert len(runs(tmp_path)) == 5
    assert ask(tmp_path, "/api/runs", "limit=-1").status == 400
    assert ask(tmp_path, "/api/runs", "limit=" + "9" * 5000).status == 400


def test_a_changed_run_is_read_again(tmp_path: Path) -> None:
    folder, found = write_run(tmp_path, "r1", [a_start(), a_round(1), Finish(status="completed")]), RunList(tmp_path)
    assert found.newest(9)[0]["rounds_done"] == 1
    folder.append(a_round(2))
    folder.append(Finish(status="completed"))
    assert found.newest(9)[0]["rounds_done"] == 2


def test_damaged_folders_and_links_are_left_out(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    write_run(root, "good")
    write_run(tmp_path, "outside")
    (root / "link").symlink_to(tmp_path / "outside")
    for name, text in {
        "garbled": b"\xff\xfe",
        "mistyped": b"= 1",
        "large": b"#" * 2_000_000,
        "deep": b"a=" + b"[" * 9000,
    }.items():
        (root / name).mkdir()
        (root / name / "config.toml").write_bytes(text)
    linked = write_run(root, "linked").path / "config.toml"
    linked.unlink()
    linked.symlink_to(tmp_path / "outside" / "config.toml")
    (root / "file").write_text("x")
    assert [run["id"] for run in runs(root)] == ["good"]
    assert ask(root, "/api/runs/linked").status == 404
    assert ask(root, "/api/runs/link").status == 404


def test_no_folder_of_runs_is_an_empty_list(tmp_path: Path) -> None:
    assert runs(tmp_path / "missing") == []


def test_odd_values_of_a_configuration_do_not_stop_the_list(tmp_path: Path) -> None:
    write_run(
        tmp_path, "r1", rounds="many", seed=[1, 2], task={"a": "b"}, **{"privacy.unit": 4, "privacy.epsilon": "x"}
    )
    assert runs(tmp_path)[0]["rounds"] == 0


def test_details_hold_result_privacy_and_origin(fake_run: MakeRun) -> None:
    path = fake_run("r1")
    (path / "origin.json").write_text('{"command": "up", "data": "demo", "clients": 4}')
    detail = json.loads(ask(path.parent, "/api/runs/r1").body)
    assert detail["result"]["status"] == "completed"
    assert detail["privacy"]["exact"] is False or detail["privacy"]["claim"]
    assert detail["origin"]["command"] == "up"
    assert detail["has_examples"] is False


def test_a_running_run_has_the_statement_of_its_configuration(tmp_path: Path) -> None:
    write_run(tmp_path, "noisy", [a_start()], **{"privacy.unit": "client", "privacy.epsilon": 3.0})
    write_run(tmp_path, "exact", [a_start()])
    noisy, exact = (json.loads(ask(tmp_path, f"/api/runs/{run}").body)["privacy"] for run in ("noisy", "exact"))
    assert (noisy["epsilon"], noisy["exact"], noisy["unit"]) == (3.0, False, "client")
    assert exact["exact"] is True


def test_damaged_files_of_a_run_are_absent(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "r1", task="nothing")
    (folder.path / "result.json").write_text("{")
    (folder.path / "origin.json").write_text("[" * 100_000)
    detail = json.loads(ask(tmp_path, "/api/runs/r1").body)
    assert (detail["result"], detail["origin"], detail["privacy"]) == (None, None, None)


def test_examples_are_served_if_they_exist_and_are_small(tmp_path: Path) -> None:
    path = write_run(tmp_path, "r1").path / "examples.json"
    assert ask(tmp_path, "/api/runs/r1/examples").status == 404
    path.write_text('{"examples": []}')
    assert ask(tmp_path, "/api/runs/r1/examples").body == b'{"examples": []}'
    path.write_text(" " * 2_000_000)
    assert ask(tmp_path, "/api/runs/r1/examples").status == 404


def test_a_run_without_start_or_fingerprint_is_comparable_with_none(tmp_path: Path) -> None:
    write_run(tmp_path, "r1", [a_start()])
    write_run(tmp_path, "r2", [a_round(1)])
    summaries = {run: summarize(tmp_path, run) or {} for run in ("r1", "r2")}
    assert [summary["group"] for summary in summaries.values()] == ["", ""]
    assert summaries["r2"]["started"] is None
