"""`docker compose up` on a real engine: a whole run, and properties of its containers."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.files_left import files_in, files_in_container, require_nothing_left
from tests.system.engine import ROOT, docker, require_engine

CLIENTS = {"client-1", "client-2", "client-3", "client-4"}
HELPERS = {"helper-1", "helper-2"}
ROUNDS = 3

UNREGISTERED = """
fedloom keys node /tmp/node.key
exec fedloom join --server superlink:9092 --ca /ca/ca.pem --key /tmp/node.key --name client-1 \\
  --state-dir /tmp/state --patience 10
"""
REACHABLE = """
import socket
for host, port in (("superlink", 9092), ("superlink", 8000), ("client-2", 1), ("run", 1)):
    try:
        socket.create_connection((host, port), timeout=5).close()
        print(host, port, "open")
    except ConnectionRefusedError:
        print(host, port, "refused")
    except socket.gaierror:
        print(host, port, "unknown")
"""

pytestmark = pytest.mark.container


class Project:
    """Compose file under its own project name, with separate volumes and networks."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        network = {"METHOD": "fedavg", "HELPERS": "0", "ROUNDS": str(ROUNDS)}
        self.environment = {**os.environ, **network, "FEDLOOM_RUNS": str(runs)}

    def __call__(self, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        command = ["docker", "compose", "-p", "fedloom-test", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, timeout=timeout, capture_output=True, text=True, check=False
        )

    def inside(self, service: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a new container of a service, without the services that it depends on."""
        return self("run", "--rm", "--no-deps", "-T", service, *command)

    def container(self, service: str) -> str:
        """Return the container of a service, which may have ended."""
        return self("ps", "--all", "--quiet", service).stdout.strip()

    def results(self) -> dict[str, dict[str, Any]]:
        """Return the result of each run by the name of its folder."""
        return {path.parent.name: json.loads(path.read_text()) for path in self.runs.glob("*/result.json")}

    def down(self) -> None:
        """Remove containers, volumes and networks of all profiles."""
        self("--profile", "*", "down", "-v", "--remove-orphans")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Yield a project with the image of this tree."""
    require_engine()
    project = Project(tmp_path_factory.mktemp("runs"))
    project.down()
    built = project("build", "--quiet", timeout=1200)  # minutes without a cache, most of them torch
    assert built.returncode == 0, built.stderr
    try:
        yield project
    finally:
        project.inside("init", "sh", "-c", "rm -rf /runs/*")  # they are the image's user's
        project.down()


@pytest.fixture(scope="module")
def finished(project: Project) -> subprocess.CompletedProcess[str]:
    """Start a federation that trains a network; it stops at the end of its run."""
    return project("up", "--abort-on-container-exit", "--exit-code-from", "run")


@pytest.fixture(scope="module")
def serving(project: Project, finished: subprocess.CompletedProcess[str]) -> Project:
    """Start the SuperLink alone, again on the same volumes."""
    up = project("up", "--detach", "superlink")
    assert up.returncode == 0, up.stderr
    return project


def test_the_run_completes_with_every_client(project: Project, finished: subprocess.CompletedProcess[str]) -> None:
    assert finished.returncode == 0, finished.stdout + finished.stderr
    [(run, result)] = [(run, result) for run, result in project.results().items() if result["task"] == "rules"]
    require_complete(result)
    assert (project.runs / run / "report.html").stat().st_size > 10_000


def test_a_profile_runs_its_task_only(project: Project, finished: subprocess.CompletedProcess[str]) -> None:
    """The other profiles differ by the task's name, as tests/deploy/test_service_files.py asserts."""
    before = project.results()
    end = project("--profile", "sessions", "up", "--abort-on-container-exit", "--exit-code-from", "run-sessions")
    assert end.returncode == 0, end.stdout + end.stderr
    [result] = [result for run, result in project.results().items() if run not in before]
    assert result["task"] == "sessions"
    require_complete(result)


def test_a_plain_start_solves_the_closed_form_from_sums_of_two_helpers(
    project: Project, finished: subprocess.CompletedProcess[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = project.results()
    for name in ("METHOD", "HELPERS", "ROUNDS"):
        monkeypatch.delitem(project.environment, name)
    end = project("up", "--abort-on-container-exit", "--exit-code-from", "run")
    assert end.returncode == 0, end.stdout + end.stderr
    [result] = [result for run, result in project.results().items() if run not in before]
    assert (result["method"], result["status"], {*result["clients"]}) == ("ridge", "completed", CLIENTS)
    assert [*result["privacy"]["helpers"]] == ["helper-1", "helper-2"]
    statistics, metrics = ROUNDS, 1
    assert result["privacy"]["sums"] == {"opened": statistics + metrics, "lost": 0}


def test_nothing_of_an_update_stays_on_the_volumes_of_a_superlink(
    project: Project, finished: subprocess.CompletedProcess[str]
) -> None:
    superlink = project.container("superlink")
    assert docker("inspect", "--format", "{{.HostConfig.ReadonlyRootfs}}", superlink) == "true"
    contents = files_in([project.runs]) | {"log": project("logs", "superlink").stdout.encode()}
    for folder in ("/superlink", "/server"):
        contents |= files_in_container(superlink, folder)
    assert any(name.endswith("superlink.sqlite") for name in contents)
    for client in CLIENTS:  # what they keep of their own updates is what is searched for
        contents |= files_in_container(project.container(client), "/client")
    require_nothing_left(contents)


def test_the_log_has_a_line_per_round_and_no_warning(finished: subprocess.CompletedProcess[str]) -> None:
    log = finished.stdout + finished.stderr  # a container's stderr is compose's stderr
    lines = [line.partition("| ")[2] for line in log.splitlines() if "run-1 " in line]
    assert [line[: len("round n/n")] for line in lines if line.startswith("round ")] == [
        f"round {n}/{ROUNDS}" for n in range(1, ROUNDS + 1)
    ]
    assert not any(word in log for word in ("Warning", "WARNING", "Traceback", "uvicorn"))


def test_only_its_owner_reads_a_private_key(project: Project, finished: subprocess.CompletedProcess[str]) -> None:
    listed = project.inside("init", "sh", "-c", "cd /volumes && find . -name '*.key' -printf '%m %u %P\\n'")
    keys = {"server/ca.key", "server/server.key", *(f"{node}/node.key" for node in CLIENTS | HELPERS)}
    assert set(listed.stdout.splitlines()) == {f"600 fedloom {key}" for key in keys}
    mounts = json.loads(project("config", "--format", "json").stdout)["services"]
    for client in CLIENTS:
        assert {m["source"] for m in mounts[client]["volumes"]} == {"ca", client, client.replace("client", "data")}


def test_a_second_start_keeps_certificates_and_keys(
    project: Project, finished: subprocess.CompletedProcess[str]
) -> None:
    sums = ("init", "sh", "-c", "cat /volumes/*/*.key | sha256sum")
    before = project.inside(*sums).stdout
    again = project.inside("init")
    assert again.returncode == 0, again.stderr
    assert project.inside(*sums).stdout == before != ""


def test_a_client_without_a_registered_key_is_refused(serving: Project) -> None:
    unregistered = serving.inside("client-1", "sh", "-c", UNREGISTERED)
    assert unregistered.returncode == 5
    last = unregistered.stderr.strip().splitlines()[-1]
    assert last.startswith("fedloom: superlink:9092 does not admit this node's key")


def test_a_client_reaches_the_superlink_and_nothing_else(serving: Project) -> None:
    reached = serving.inside("client-1", "python", "-c", REACHABLE)
    assert reached.stdout.splitlines() == [
        "superlink 9092 open",
        "superlink 8000 refused",
        "client-2 1 unknown",
        "run 1 unknown",
    ]


def test_the_image_is_not_root_and_holds_no_key(project: Project) -> None:
    assert docker("image", "inspect", "--format", "{{.Config.User}}", "fedloom") == "1000:1000"
    names = r"find / -xdev \( -name '*.key' -o -name '*.key.pub' -o -name .git -o -name .fedloom \) -print 2>/dev/null"
    texts = "grep -rIlsE '^-----BEGIN ([A-Z]+ )?PRIVATE KEY-----' / --exclude-dir={proc,sys,dev,site-packages}"
    assert docker("run", "--rm", "--network", "none", "fedloom", "bash", "-c", f"{names}; {texts}; true") == ""


def require_complete(result: dict[str, Any]) -> None:
    """Check that all rounds were completed with all clients."""
    assert result["status"] == "completed"
    assert result["rounds_done"] == ROUNDS
    assert result["clients"].keys() == CLIENTS
