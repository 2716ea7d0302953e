"""Summary of a result, on a terminal and in a log."""

import io
import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from deploy.pages.statement import describe
from deploy.pages.terminal import print_summary, spread, summary_lines
from deploy.pages.view import measure
from server.record.result import Best, ClientResult, Privacy, Result, Verdict

RESULT = Result(
    run="r1",
    method="fedrule",
    task="rules",
    model="default",
    seed=0,
    rounds=30,
    rounds_done=29,
    status="completed",
    metrics={"hr20": 0.4, "auc": 0.98, "mr0": 0.75},
    best=Best(round=21, metrics={"auc": 0.99, "mr0": 0.7, "hr20": 0.41}),
    clients={f"client-{i}": ClientResult(examples=i, metrics={"auc": 0.9 + i / 100}) for i in range(1, 5)},
    seconds=12.6,
    bytes_down=412_000,
    bytes_up=410_000,
    privacy=Privacy(unit="none", mechanism="none", epsilon_spent_max=None, delta=None, uncovered=["all"]),
    model_sha256="0123456789abcdef0123",
    versions={},
)


def test_plain_lines() -> None:
    assert summary_lines(RESULT, Path("runs/r1/report.html")) == [
        "fedrule on rules · model default · completed · 29/30 rounds · 4 clients",
        "metric          final  best (round 21)  clients min  median    max",
        "AUC ↑           0.980            0.990        0.910   0.925  0.940",
        "Mean rank ↓      0.75             0.70            –       –      –",
        "Hit rate @20 ↑  0.400            0.410            –       –      –",
        "measured    as means over the records of 4 clients",
        "time        12.6 s",
        "network     412 kB to the clients, 410 kB from them",
        f"privacy     {describe(RESULT.privacy)[0]}",
        "not covered all",
        "model       sha256 0123456789abcdef…",
        "report      runs/r1/report.html",
    ]


def test_a_forecaster_s_table_is_short() -> None:
    shown = "mse cluster_mse teacher_mse profile_mse last_week_mse rho_point rho_trace truth_rho_trace property_width"
    more = ("loss", "rho_window", "truth_rho_point", "teacher_rho_trace", "cluster_rho_trace", "cluster_teacher_mse")
    metrics = dict.fromkeys([*more, *shown.split()], 0.5)
    lines = summary_lines(replace(RESULT, task="traffic", metrics=metrics, best=None), None)
    assert [line.split("  ")[0] for line in lines[2:11]] == [
        "Mean squared error ↓",
        "Mean squared error, cluster model ↓",
        "Mean squared error, teacher ↓",
        "Mean squared error of the profile ↓",
        "Mean squared error of last week ↓",
        "Rule satisfaction, points ↑",
        "Rule satisfaction, traces ↑",
        "Rule satisfaction, traces, the truth itself",
        "Width of the property",
    ]
    assert lines[12].startswith("time")


def test_a_best_round_on_validation_data_is_labeled() -> None:
    best = Best(round=21, metrics=RESULT.metrics, split="validation")
    header = summary_lines(replace(RESULT, best=best), None)[1]
    assert "final  best on validation data (round 21)  clients min" in header
    out = io.StringIO()
    print_summary(replace(RESULT, best=best), None, Console(file=out, width=80, force_terminal=True, color_system=None))
    assert "validation data" in out.getvalue()
    assert "(round 21)" in out.getvalue()
    assert "…" not in out.getvalue().partition("time")[0]
    tested = replace(best, test={**RESULT.metrics, "auc": 0.875})
    header, auc = summary_lines(replace(RESULT, best=tested), None)[1:3]
    assert "final  round 21, best on validation data  clients min" in header
    assert auc.split()[:4] == ["AUC", "↑", "0.980", "0.875"], "that of the model which the verdict judges"


def test_without_a_best_round_there_is_no_column_for_one() -> None:
    lines = summary_lines(replace(RESULT, best=Best(round=RESULT.rounds_done, metrics=RESULT.metrics)), None)
    assert lines[1:3] == [
        "metric          final  clients min  median    max",
        "AUC ↑           0.980        0.910   0.925  0.940",
    ]
    assert summary_lines(replace(RESULT, best=None, clients={}), None)[1] == "metric          final", "as in sums"


def test_the_number_of_measuring_clients_is_shown() -> None:
    silent = {
        "client-9": ClientResult(examples=1, metrics={}),
        "client-8": ClientResult(examples=1, metrics={"auc": math.nan}),
    }
    lines = summary_lines(replace(RESULT, clients={**RESULT.clients, **silent}), None)
    silent_too = (
        "measured    as means over the records of 4 clients; the other 2 have no held-out data, share no metrics "
    )
    assert f"{silent_too}or are gone" in lines
    assert "measured    as means over the records of 4 clients" in summary_lines(RESULT, None)


def test_a_failed_run_without_anything() -> None:
    failed = replace(
        RESULT, status="failed", reason="no client came", metrics={}, best=None, clients={}, model_sha256=""
    )
    lines = summary_lines(failed, None)
    assert lines[0].endswith("failed · 29/30 rounds · 0 clients")
    assert lines[1] == "reason      no client came"
    assert lines[-2].startswith("privacy")


def test_spread_is_over_the_clients_that_have_the_metric() -> None:
    assert spread(RESULT, measure("auc")) == pytest.approx((0.91, 0.925, 0.94))
    assert spread(RESULT, measure("mr0")) == (None, None, None)


def test_a_log_gets_the_plain_lines_and_a_terminal_a_table() -> None:
    for terminal in (False, True):
        out = io.StringIO()
        print_summary(RESULT, Path("r.html"), Console(file=out, width=100, force_terminal=terminal, color_system=None))
        text = out.getvalue()
        if not terminal:
            assert text.splitlines() == summary_lines(RESULT, Path("r.html"))
        for part in ("best (round 21)", "0.925", "12.6 s", "r.html", "Hit rate @20 ↑"):
            assert part in text


def test_a_guarantee_has_its_own_lines_and_an_early_end_is_completed() -> None:
    noisy = Privacy(
        unit="client",
        mechanism="noise",
        epsilon_spent_max=3.0,
        delta=1e-5,
        uncovered=["metrics", "tuning"],
        epsilon=4.0,
        neighbours="replace-one",
        account="zcdp",
    )
    early = "ended early: no client can pay another round"
    lines = summary_lines(replace(RESULT, reason=early, privacy=noisy), None)
    assert lines[0].endswith("completed · 29/30 rounds · 4 clients")
    assert lines[5:] == [
        f"note        {early}",
        "measured    as means over the records of 4 clients",
        "time        12.6 s",
        "network     412 kB to the clients, 410 kB from them",
        f"privacy     {describe(noisy)[0]}",
        "spent       at most ε = 3, δ = 1e-05 requested from a client; for planning, not the guarantee",
        "terms       unit client; replace-one; noise; counted in zCDP (ρ)",
        "not covered metrics; tuning",
        "model       sha256 0123456789abcdef…",
    ]
    short = summary_lines(replace(RESULT, privacy=replace(noisy, uncovered=["metrics: who", "tuning"])), Path("r.html"))
    assert "not covered metrics; tuning" in short, "the report explains them"


def _terminal(result: Result) -> str:
    out = io.StringIO()
    print_summary(result, None, Console(file=out, width=200, force_terminal=True, color_system="standard"))
    return out.getvalue()


def test_a_run_without_metrics_has_no_table() -> None:
    silent = replace(RESULT, metrics={}, best=None)
    assert "no metrics: no client has data to hold out, or shares metrics; 4 clients" in summary_lines(silent, None)[1]
    assert "clients min" not in _terminal(silent)
    assert "fedrule on rules · model default" in _terminal(silent)
    assert "clients min" in _terminal(RESULT)


def test_commands_in_a_verdict_are_shown_without_marks() -> None:
    text = "Level with alone. By validation hr@20 round 3 was better than the last: `--checkpoint best` is used."
    verdict = Verdict(metric="hr20", better="higher", final=0.4, text=text)
    result = replace(RESULT, verdict=verdict)
    [line] = [line for line in summary_lines(result, None) if line.startswith("verdict")]
    assert line.endswith("than the last: --checkpoint best is used.")
    assert "\x1b[1m--checkpoint best\x1b[0m" in _terminal(result)
    assert "`" not in _terminal(result)
