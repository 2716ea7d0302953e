"""Run folders with simulated events and results, complete as those of real runs."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from server.record.events import Finish, RoundEvent, Start
from server.record.folder import RunDirectory
from server.record.result import Best, ClientResult, Privacy, Result

MakeRun = Callable[..., Path]
"""Writes a run folder and returns its path."""


def make_run(
    root: Path,
    run_id: str,
    method: str = "fedrule",
    rounds: int = 30,
    clients: int = 4,
    seed: int = 0,
    limit: float = 0.985,
    status: str = "completed",
) -> Path:
    """Write a rules run whose AUC saturates at `limit`; `status` may also be `failed` or `running`."""
    rng = np.random.default_rng(seed)
    run = RunDirectory(root, run_id)
    run.create(
        {"method": method, "task": "rules", "rounds": rounds, "seed": seed, "model": "default"}
        | {"federation": {"min-clients": clients}, "algorithm": {method: {"local-lr": 0.01, "lam": 1.0}}},
        {"entities": ["Door"]},
    )
    names = [f"client-{i + 1}" for i in range(clients)]
    run.append(Start(time=1.8e9, run=run_id, method=method, task="rules", model="default", seed=seed, rounds=rounds))
    for r in range(1, rounds + 1):
        event = _round(r, rounds, names, _rule_metrics(r, limit, rng), rng)
        run.append(replace(event, server=_rates(r) if method == "fedga" else {}))
    if status != "running":
        end: Literal["failed", "completed"] = "failed" if status == "failed" else "completed"
        reason = "1 of 4 clients answered, 2 are needed" if end == "failed" else ""
        run.append(Finish(time=1.8e9 + rounds, status=end, reason=reason))
        metrics = _rule_metrics(rounds, limit, rng)
        results = {name: _rule_client(metrics, rng) for name in names}
        best = Best(round=rounds - 4, metrics={**metrics, "auc": metrics["auc"] + 0.002})
        result = _result(run_id, method, "rules", rounds, metrics, best, results)
        run.write_result(replace(result, seed=seed, status=end, reason=reason))
    return run.path


def make_forecasts(root: Path, run_id: str, method: str = "fedstl", rounds: int = 8, clients: int = 6) -> Path:
    """Write a traffic run whose last round is evaluated on test data.

    Client k begins in cluster k mod 3; clients of odd numbers move to cluster 1 in round 4.
    """
    run, names = RunDirectory(root, run_id), [f"client-{k}" for k in range(clients)]
    options = {"method": method, "task": "traffic", "rounds": rounds, "tasks.traffic.validation-share": 0.1}
    run.create(options, {"variables": ["volume"]})
    for r in range(1, rounds + 1):
        groups = {name: 1 if k % 2 and r >= 4 else k % 3 for k, name in enumerate(names)} if method == "fedstl" else {}
        metrics = _forecast_metrics(1 / r if r < rounds else 50.0, method)
        run.append(replace(_round(r, rounds, names, metrics, np.random.default_rng(r)), clusters=groups))
    results = {
        name: ClientResult(examples=k + 1, metrics=_forecast_metrics(0.1 * (k + 1), method))
        for k, name in enumerate(names)
    }
    best = Best(round=rounds - 1, metrics=_forecast_metrics(1 / max(rounds - 1, 1), method))
    run.write_result(_result(run_id, method, "traffic", rounds, _forecast_metrics(50.0, method), best, results))
    return run.path


def _result(
    run: str,
    method: str,
    task: str,
    rounds: int,
    metrics: dict[str, float],
    best: Best,
    clients: dict[str, ClientResult],
) -> Result:
    return Result(
        run=run,
        method=method,
        task=task,
        model="default",
        seed=0,
        rounds=rounds,
        rounds_done=rounds,
        status="completed",
        metrics=metrics,
        best=best,
        clients=clients,
        seconds=0.42 * rounds,
        bytes_down=412_000 * rounds,
        bytes_up=410_000 * rounds,
        privacy=Privacy(
            unit="none",
            mechanism="none",
            epsilon_spent_max=None,
            delta=None,
            uncovered=["model updates", "number of examples", "metrics"],
        ),
        model_sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        versions={"fedloom": "0.1.0", "flwr": "1.39.0", "torch": "2.13.0", "python": "3.11.9"},
    )


def _round(r: int, rounds: int, names: list[str], metrics: dict[str, float], rng: np.random.Generator) -> RoundEvent:
    missing = names[2:3] if r in range(12, 16) and len(names) > 2 else []
    refused = {names[1]: "method 'fedavg' is not allowed by its policy"} if r == 20 else {}
    answered = len(names) - len(missing) - len(refused)
    return RoundEvent(
        time=1.8e9 + r,
        round=r,
        rounds=rounds,
        loss=0.14 + 0.55 * math.exp(-r / 7) + 0.01 * float(rng.normal()),
        metrics=metrics,
        seconds=0.38 + 0.08 * float(rng.random()) + (1.6 if missing else 0),
        answered=answered,
        asked=len(names),
        missing=missing,
        refused=refused,
        bytes_down=103_000 * len(names),
        bytes_up=102_500 * answered,
    )


def _rates(r: int) -> dict[str, float]:
    return {f"rate_p{q}": 10 ** (q / 25) * (1 + r / 9) for q in (5, 25, 50, 75, 95)}


def _rule_metrics(r: int, limit: float, rng: np.random.Generator) -> dict[str, float]:
    grown = 1 - math.exp(-r / 6)
    jitter = float(rng.normal()) * 0.002
    rank = 1.2 + 14 * (1 - grown) + 40 * (1 - limit) + 20 * jitter
    hits = {f"hr{n}": min(1.0, grown * limit**8 * (1 - math.exp(-n / 22)) + jitter) for n in (5, 10, 20, 40)}
    loss, auc = 0.16 + 0.5 * (1 - grown) + 2 * (1 - limit) + jitter, 0.6 + (limit - 0.6) * grown + jitter
    return {"loss": loss, "auc": auc, "mr0": rank, "mr1": rank + 1, "mr_rt": rank * 0.72, **hits}


def _rule_client(metrics: dict[str, float], rng: np.random.Generator) -> ClientResult:
    examples = int(rng.pareto(1.5) * 20) + 3
    shift = float(rng.normal())
    scale = {"auc": 0.01, "mr0": 1.0, "mr1": 1.0, "mr_rt": 0.7, "loss": 0.03}
    shifted = {key: value + shift * scale.get(key, 0.06) for key, value in metrics.items()}
    limited = {"auc": min(shifted["auc"], 1.0), "mr0": max(shifted["mr0"], 0.0)}
    return ClientResult(examples=examples, metrics=shifted | limited)


def _forecast_metrics(mse: float, method: str) -> dict[str, float]:
    own = {"loss": mse, "mse": mse, "rho_point": 0.9, "rho_window": 0.8, "rho_trace": 0.5}
    own |= {"teacher_mse": mse * 0.9, "teacher_rho_point": 1.0, "teacher_rho_trace": 1.0}
    shared = {f"cluster_{key}": value * 1.1 for key, value in own.items()} if method == "fedstl" else {}
    truth = {"truth_rho_point": 0.99, "truth_rho_trace": 0.9, "property_width": 1.2}
    return own | shared | truth | {"profile_mse": 0.3, "last_week_mse": 0.6}
