"""Times that users wait for; `python -m studies.experience NAME` writes experience.json.

`serve` times answers of the local server, `first` the way from a fresh clone to the first result table.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil

RESULTS = Path("docs/results/experience.json")

DEVICES, RELATIONS, REQUESTS, WARM_UP = 15, 60, 500, 20
PORT = 19801
TOKEN = "benchmark-of-the-local-server"
LIMIT_P95_MS = 10.0

LIMIT_FIRST_SECONDS = 300.0
"""Limit from a fresh clone to the first result table, with a warm cache of packages."""

OF_THIS_PROCESS = {"PYTHONPATH", "FEDLOOM_RUNS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
"""Variables that a clone does not inherit; an outer `make` sets the last three."""

TABLE = "metric"
"""Beginning of the result table's header."""

Measurement = dict[str, Any]


def serve(port: int = PORT, requests: int = REQUESTS) -> Measurement:
    """Time answers of `fedloom serve-model` for 15 devices and 60 relations, one after another."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(_export())
        command = [sys.executable, "-m", "deploy.cli", "serve-model", str(path), "--port", str(port)]
        environment = {**os.environ, "FEDLOOM_TOKEN": TOKEN, "PYTHONPATH": str(Path.cwd())}
        with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL) as server:
            try:
                milliseconds = _time_answers(port, requests)
                resident = psutil.Process(server.pid).memory_info().rss
            finally:
                server.terminate()
    p50, p95, p99 = (round(float(np.percentile(milliseconds, q)), 2) for q in (50, 95, 99))
    counts = {"requests": requests, "devices": DEVICES, "relations": RELATIONS}
    times = {"p50_ms": p50, "p95_ms": p95, "p99_ms": p99, "limit_p95_ms": LIMIT_P95_MS}
    return {**counts, **times, "resident_mb": round(resident / 1e6), "within_limit": p95 < LIMIT_P95_MS}


def _export() -> bytes:
    """Return an untrained rule recommender of 60 relations as an exported model."""
    from common.config.parse import parse
    from common.models import build_model, parameters
    from common.tasks.rules.task import TASK
    from deploy.serving.load import Document
    from deploy.serving.onnx_export import to_onnx
    from deploy.tasks.rules.model_service import export
    from deploy.tasks.spec import TrainedRun

    demo = TASK.demo()
    vocabulary = demo.model_copy(update={"relations": demo.relations[:RELATIONS]})
    config = parse({"method": "fedrule", "task": TASK.name, "run-id": "benchmark"})
    model = parameters(build_model(TASK, config.task_run(TASK, vocabulary)))
    run = TrainedRun(
        name="benchmark",
        config=config,
        vocabulary=vocabulary,
        model=model,
        data="",
        read=lambda test: _no_data(),
        find_stored=lambda client: None,
    )
    document = Document("benchmark", config, vocabulary, {}, "", "untrained", {"run": "benchmark"})
    return to_onnx(export(run, None).network, document.to_properties())


def _no_data() -> Any:
    raise AssertionError("the exported model needs no data")


def _time_answers(port: int, requests: int) -> list[float]:
    body = json.dumps(_home())
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    channel = _connect(port)
    milliseconds = []
    for k in range(WARM_UP + requests):
        start = time.perf_counter()
        channel.request("POST", "/v1/recommend", body, headers)
        answer = channel.getresponse()
        content = answer.read()
        if k >= WARM_UP:
            milliseconds.append(1000 * (time.perf_counter() - start))
        assert answer.status == 200, content
        assert len(json.loads(content)["items"]) == 10
    return milliseconds


def _connect(port: int) -> http.client.HTTPConnection:
    """Return a connection to the server, as soon as it answers."""
    deadline = time.monotonic() + 120
    while True:
        channel = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            channel.request("GET", "/healthz")
            channel.getresponse().read()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return channel


def _home() -> dict[str, Any]:
    """Return a home of 15 devices with a rule for each sixth relation that its devices support."""
    from common.tasks.rules.task import TASK
    from common.tasks.rules.vocabulary import relation_parts

    demo = TASK.demo()
    types = [demo.entities[k % len(demo.entities)] for k in range(DEVICES)]
    names = {kind: f"device {k}" for k, kind in enumerate(types)}
    rules = []
    for relation in demo.relations[:RELATIONS:6]:
        state, action = relation_parts(relation)
        triggers = [kind for kind in names if state in demo.notices.get(kind, ())]
        targets = [kind for kind in names if action in demo.does.get(kind, ()) and kind not in triggers[:1]]
        if triggers and targets:
            rule = {"trigger": names[triggers[0]], "state": state, "action": action, "device": names[targets[0]]}
            rules.append(rule)
    return {"devices": [{"id": f"device {k}", "type": kind} for k, kind in enumerate(types)], "rules": rules}


def first() -> Measurement:
    """Time `make demo` in a fresh clone of the last commit, up to the first result table and to its end."""
    with TemporaryDirectory() as folder:
        clone, start = Path(folder) / "fedloom", time.monotonic()
        subprocess.run(["git", "clone", "--quiet", str(Path.cwd()), str(clone)], check=True)
        environment = {name: value for name, value in os.environ.items() if name not in OF_THIS_PROCESS}
        command = ["make", "demo"]
        with subprocess.Popen(
            command, cwd=clone, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            table = 0.0
            for line in process.stdout:
                sys.stderr.write(line)
                if line.startswith(TABLE) and not table:
                    table = time.monotonic() - start
        if process.returncode or not table:
            raise SystemExit(f"make demo ended with exit code {process.returncode} and no result table")
        whole = time.monotonic() - start
    seconds = {"table_seconds": round(table), "seconds": round(whole), "limit_seconds": LIMIT_FIRST_SECONDS}
    return {**seconds, "within_limit": table < LIMIT_FIRST_SECONDS}


COMMANDS: dict[str, Callable[[], Measurement]] = {"serve": serve, "first": first}
"""Measurements by name."""


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and store beside the measurements that exist."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measurement", choices=COMMANDS)
    name = parser.parse_args(arguments).measurement
    load = round(os.getloadavg()[0], 1)
    found = {**COMMANDS[name](), "load_before": load, "date": f"{datetime.now(UTC):%Y-%m-%d}", "cores": os.cpu_count()}
    stored = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**stored, name: found}, indent=1, sort_keys=True) + "\n", "utf-8")
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
