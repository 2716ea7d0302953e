"""Train every valid combination of task, method, model and noise; print the outcomes as JSON.

Called by compare.py for both trees, so it uses only what both have: the command line and `simulate_measured`.
"""

import contextlib
import hashlib
import io
import itertools
import json
import sys
import tomllib
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path

CLIENTS = {
    "rules": "demo:0-16",
    "sessions": "demo:0-5",
    "traffic": "demo:0-3",
    "ratings": "demo:0-6",
    "markets": "demo:0-3",
}
INNER = (
    *("fedrule", "fedga", "fedstl", "pfgnn", "fedavg", "fedprox", "fedadam", "fedyogi", "fedadagrad"),
    *("fedrep", "ditto", "local", "ifca"),
)
PLANNERS = ("bgtplanner", "uniform")
NOISE = {
    "none": (),
    "gaussian": ("--epsilon", "8", "--set", "privacy.mechanism=gaussian", "--set", "privacy.accept-noise=true"),
    "laplace": ("--epsilon", "8", "--set", "privacy.mechanism=laplace", "--set", "privacy.accept-noise=true"),
    "privunit": ("--epsilon", "8", "--set", "privacy.mechanism=privunit", "--set", "privacy.accept-noise=true"),
    "record": ("--epsilon", "8", "--set", "privacy.unit=record"),
}
EQ3 = ("--set", "algorithm.fedrule.control=eq3", "--set", "training.optimizer=sgd")
VARIANTS = {
    "sessions-tagnn": ("sessions", "fedga", "--set", "tasks.sessions.network=tagnn", "--set", "model=paper"),
    "traffic-difference": ("traffic", "fedstl", "--set", "tasks.traffic.property=calibrated"),
    "ratings-paper-items": ("ratings", "fedavg", "--set", "tasks.ratings.items=paper", "--set", "model=paper"),
    "markets-spe": ("markets", "fedavg", "--set", "tasks.markets.network=spe", "--set", "model=paper"),
    "markets-siamese": ("markets", "fedavg", "--set", "tasks.markets.network=siamese", "--set", "model=paper"),
    "markets-kappa": ("markets", "pfgnn", "--set", "model=paper", "--set", "algorithm.pfgnn.exchange=kappa"),
    "markets-pfgnn": ("markets", "pfgnn", "--set", "model=paper", "--set", "algorithm.pfgnn.plus=false"),
    "ratings-default": ("ratings", "", "--epsilon", "8"),
    "rules-fedrule-eq3": ("rules", "fedrule", *EQ3),
    "rules-cohort": ("rules", "fedrule", "--set", "federation.cohort=0.5"),
}


def combinations() -> dict[str, list[str]]:
    """Return the arguments of `fedloom simulate` by name of the combination."""
    commands: dict[str, list[str]] = {}
    for task, method, model, noise in itertools.product(CLIENTS, INNER + PLANNERS, ("default", "paper"), NOISE):
        planner = method in PLANNERS
        quick = ["--set", "algorithm.bgtplanner.arms=2", "--set", "algorithm.bgtplanner.t0=1"]
        if noise in ("laplace", "privunit") and method not in ("fedavg", "fedrule", "fedstl", "pfgnn", "bgtplanner"):
            continue
        name = f"{task}-{method}-{model}-{noise}"
        rounds = "4" if planner else "2"
        options = ["--task", task, "--method", method, "--rounds", rounds, "--set", f"model={model}"]
        commands[name] = [*options, *(quick if method == "bgtplanner" else ()), *NOISE[noise]]
    for name, (task, method, *further) in VARIANTS.items():
        commands[name] = ["--task", task, *(("--method", method) if method else ()), *further]
        commands[name] += [] if "--rounds" in further else ["--rounds", "2"]
    return commands


def outcome(name: str, arguments: list[str]) -> str:
    """Return hashes of the trained model, its configuration and its metrics; or "refused"."""
    from deploy import cli

    task = arguments[1]
    sys.argv = ["fedloom", "simulate", "--data", CLIENTS[task], "--together", "1", "--run-id", name, *arguments]
    quiet = io.StringIO()
    try:
        with contextlib.redirect_stderr(quiet), contextlib.redirect_stdout(quiet), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cli.main()
    except SystemExit as ended:
        if ended.code not in (0, None):
            return f"refused with status {ended.code}"
    folder = Path("runs") / name
    result = json.loads((folder / "result.json").read_text())
    config = json.dumps(tomllib.loads((folder / "config.toml").read_text("utf-8")), sort_keys=True)
    measured = json.dumps([result[key] for key in ("metrics", "clients", "bytes_down", "bytes_up")], sort_keys=True)
    hashes = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in (config, measured)]
    return " ".join([result["model_sha256"], *hashes])


def main() -> None:
    """Run all combinations whose name contains the second argument."""
    tree, only = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    sys.path.insert(0, tree)
    try:
        simulation = import_module("deploy.simulation.state")
    except ImportError:  # a tree before 28 November 2026
        simulation = import_module("deploy.resumable_simulation")
    vars(simulation)["simulate_measured"] = partial(simulation.simulate_measured, noise_seed=7)
    outcomes = {name: outcome(name, arguments) for name, arguments in combinations().items() if only in name}
    json.dump(outcomes, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
