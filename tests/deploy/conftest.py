"""Simulated run folders, complete as those of real runs, for the report and the summary.

To view the page: `python tests/deploy/conftest.py FOLDER` writes three runs and their report there.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from server.artifacts import RunDirectory
from server.events import Best, ClientResult, Finish, Privacy, Result, Round, Start

MakeRun = Callable[..., Path]


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
        run.append(replace(_round(r, rounds, names, limit, rng), server=_rates(r) if method == "fedga" else {}))
    if status == "running":
        return run.path

    finals = _metrics(rounds, limit, rng)
    reason = "1 of 4 clients answered, 2 are needed" if status == "failed" else ""
    run.append(Finish(time=1.8e9 + rounds, status="failed" if reason else "completed", reason=reason))
    run.write_result(
        Result(
            run=run_id,
            method=method,
            task="rules",
            model="default",
            seed=seed,
            rounds=rounds,
            rounds_done=rounds,
            status="failed" if reason else "completed",
            reason=reason,
            metrics=finals,
            best=Best(round=rounds - 4, metrics={**finals, "auc": finals["auc"] + 0.002}),
            clients={name: _client(finals, rng) for name in names},
            seconds=0.42 * rounds,
            bytes_down=412_000 * rounds,
            bytes_up=410_000 * rounds,
            privacy=Privacy(
                unit="client",
                mechanism="nothing is noised",
                epsilon_spent_max=None,
                delta=None,
                uncovered=["model updates", "number of examples", "metrics"],
            ),
            model_sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            versions={"fedloom": "0.1.0", "flwr": "1.39.0", "torch": "2.13.0", "python": "3.11.9"},
        )
    )
    return run.path


def _round(r: int, rounds: int, names: list[str], limit: float, rng: np.random.Generator) -> Round:
    missing = names[2:3] if r in range(12, 16) and len(names) > 2 else []
    refused = {names[1]: "method 'fedavg' is not allowed by its policy"} if r == 20 else {}
    return Round(
        time=1.8e9 + r,
        round=r,
        rounds=rounds,
        loss=0.14 + 0.55 * math.exp(-r / 7) + 0.01 * float(rng.normal()),
        metrics=_metrics(r, limit, rng),
        seconds=0.38 + 0.08 * float(rng.random()) + (1.6 if missing else 0),
        answered=len(names) - len(missing) - len(refused),
        asked=len(names),
        missing=missing,
        refused=refused,
        bytes_down=103_000 * len(names),
        bytes_up=102_500 * (len(names) - len(missing) - len(refused)),
    )


def _rates(r: int) -> dict[str, float]:
    return {f"rate_p{q}": 10 ** (q / 25) * (1 + r / 9) for q in (5, 25, 50, 75, 95)}


def _metrics(r: int, limit: float, rng: np.random.Generator) -> dict[str, float]:
    grown = 1 - math.exp(-r / 6)
    noise = float(rng.normal()) * 0.002
    rank = 1.2 + 14 * (1 - grown) + 40 * (1 - limit) + 20 * noise
    hits = {f"hr{n}": min(1.0, grown * limit**8 * (1 - math.exp(-n / 22)) + noise) for n in (5, 10, 20, 40)}
    ranks = {"mr0": rank, "mr1": rank + 1, "mr_rt": rank * 0.72}
    return (
        {"loss": 0.16 + 0.5 * (1 - grown) + 2 * (1 - limit) + noise, "auc": 0.6 + (limit - 0.6) * grown + noise}
        | ranks
        | hits
    )


def _client(finals: dict[str, float], rng: np.random.Generator) -> ClientResult:
    examples = int(rng.pareto(1.5) * 20) + 3
    shift = float(rng.normal())
    scale = {"auc": 0.01, "mr0": 1.0, "mr1": 1.0, "mr_rt": 0.7, "loss": 0.03}
    metrics = {key: value + shift * scale.get(key, 0.06) for key, value in finals.items()}
    return ClientResult(
        examples=examples, metrics=metrics | {"auc": min(metrics["auc"], 1.0), "mr0": max(metrics["mr0"], 0.0)}
    )


def make_forecasts(root: Path, run_id: str, method: str = "fedstl", rounds: int = 8, clients: int = 6) -> Path:
    """Write a traffic run.

    Client k begins in cluster k mod 3; odd ones move to cluster 1 in round 4. The last round is test.
    """
    run, names = RunDirectory(root, run_id), [f"client-{k}" for k in range(clients)]
    options = {"method": method, "task": "traffic", "rounds": rounds, "tasks.traffic.validation-share": 0.1}
    run.create(options, {"variables": ["volume"]})
    for r in range(1, rounds + 1):
        groups = {name: 1 if k % 2 and r >= 4 else k % 3 for k, name in enumerate(names)} if method == "fedstl" else {}
        one = _round(r, rounds, names, 0.9, np.random.default_rng(r))
        run.append(replace(one, metrics=_forecasts(1 / r if r < rounds else 50.0, method), clusters=groups))
    finals = {
        name: ClientResult(examples=k + 1, metrics=_forecasts(0.1 * (k + 1), method)) for k, name in enumerate(names)
    }
    about = {"run": run_id, "method": method, "task": "traffic", "model": "default", "seed": 0}
    run.write_result(
        Result(
            **about,  # type: ignore[arg-type]
            rounds=rounds,
            rounds_done=rounds,
            status="completed",
            metrics=_forecasts(50.0, method),
            best=Best(round=rounds - 1, metrics=_forecasts(1 / max(rounds - 1, 1), method)),
            clients=finals,
            seconds=9.0,
            bytes_down=1,
            bytes_up=1,
            privacy=Privacy(unit="none", mechanism="none", epsilon_spent_max=None, delta=None),
            model_sha256="9f86d081",
            versions={},
        )
    )
    return run.path


def _forecasts(mse: float, method: str) -> dict[str, float]:
    own = {"loss": mse, "mse": mse, "rho_point": 0.9, "rho_window": 0.8, "rho_trace": 0.5}
    own |= {"teacher_mse": mse * 0.9, "teacher_rho_point": 1.0, "teacher_rho_trace": 1.0}
    shared = {f"cluster_{key}": value * 1.1 for key, value in own.items()} if method == "fedstl" else {}
    truth = {"truth_rho_point": 0.99, "truth_rho_trace": 0.9, "property_width": 1.2}
    return own | shared | truth | {"profile_mse": 0.3, "last_week_mse": 0.6}


@pytest.fixture(scope="session")
def fake_forecasts(tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """`make_forecasts`, each in a folder of its own."""
    return lambda run_id="r1", **options: make_forecasts(tmp_path_factory.mktemp("runs"), run_id, **options)


@pytest.fixture(scope="session")
def fake_run(tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """`make_run`, each in a folder of its own."""
    return lambda run_id="r1", **options: make_run(tmp_path_factory.mktemp("runs"), run_id, **options)


if __name__ == "__main__":
    from deploy.report.render import render

    folder = Path(sys.argv[1])
    made = [
        make_run(folder, "20261120-142501-fedrule-rules-ab12", rounds=60),
        make_run(folder, "20261120-150210-fedavg-rules-77c0", "fedavg", rounds=60, seed=1, limit=0.955),
        make_run(
            folder, "20261120-153344-fedprox-rules-19fe", "fedprox", rounds=40, seed=2, limit=0.965, status="running"
        ),
        make_run(folder, "20261120-160000-fedrule-rules-many", rounds=60, clients=400),
    ]
    print(
        render(made[:1], folder / "one.html"),
        render(made[:3], folder / "three.html"),
        render(made[3:], folder / "many.html"),
    )
