"""Configuration keys that pyproject.toml declares to Flower."""

import os
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from flwr.common.config import flatten_dict

from common.config.parse import flatten
from common.config.run import RunConfig

DELIBERATELY_ABSENT = {"run-id", "resume"}  # belong to one run: `flwr run` makes a new run each time


def test_pyproject_declares_every_option_of_flwr_run_with_its_default() -> None:
    """Defaults belong to the pydantic model; Flower accepts only keys that pyproject.toml declares."""
    pyproject: dict[str, Any] = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    declared = flatten_dict(pyproject["tool"]["flwr"]["app"]["config"])
    defaults = flatten(RunConfig())
    assert declared == {key: value for key, value in defaults.items() if key not in DELIBERATELY_ABSENT}
    assert {key: type(value) for key, value in declared.items()} == {key: type(defaults[key]) for key in declared}


DEPLOY = Path(__file__).parents[2] / "deploy"
NEEDED = {"compose.server.yml": "FEDLOOM_NAME", "compose.client.yml": "DATA"}
UNITS = ("fedloom-server.service", "fedloom-client.service", "fedloom-helper.service")
PROGRAM = "/opt/fedloom/bin/fedloom"


def services(file: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / file).read_text())["services"]
    return found


@pytest.mark.parametrize(("file", "needed"), NEEDED.items())
def test_compose_accepts_the_file_and_asks_for_what_is_missing(file: str, needed: str) -> None:
    if shutil.which("docker") is None or subprocess.run(["docker", "compose", "version"], check=False).returncode:
        pytest.skip("needs Docker Compose")
    command = ["docker", "compose", "-f", str(DEPLOY / file), "config", "-q"]
    environment = {key: value for key, value in os.environ.items() if key != needed}
    done = subprocess.run(command, env={**environment, needed: "x"}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    missing = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert missing.returncode != 0
    assert f"{needed} is missing a value" in missing.stderr


@pytest.mark.parametrize("file", [*NEEDED, "../docker-compose.yml"])
def test_every_container_is_confined(file: str) -> None:
    for service in services(file).values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert (service["mem_limit"], service["pids_limit"]) == ("${MEMORY:-4g}", 512)
        assert service["ulimits"] == {"nofile": 16384}
        assert service.get("user") == ("root" if service.get("cap_add") == ["CHOWN", "FOWNER"] else None)
        assert not service.get("privileged")


def test_the_server_publishes_one_port_and_does_not_train_again_after_its_run() -> None:
    found = services("compose.server.yml")
    assert found["server"]["ports"] == ["${BIND:-0.0.0.0}:${PORT:-9092}:9092"]
    assert found["server"]["restart"] == "on-failure"
    assert found["keys"]["network_mode"] == "none"


def test_a_client_publishes_no_port_and_reads_its_data_only() -> None:
    client = services("compose.client.yml")["client"]
    assert "ports" not in client
    assert [volume for volume in client["volumes"] if not volume.endswith(":ro")] == ["state:/state"]


SUMMED = ["rules", "sessions", "traffic", "ratings", "markets"]
"""Tasks whose default is a closed form, from sums."""


def test_helpers_have_their_own_volumes_networks_and_keys_and_no_data() -> None:
    found: dict[str, Any] = yaml.safe_load((DEPLOY.parent / "docker-compose.yml").read_text())
    for name in ("helper-1", "helper-2"):
        helper = found["services"][name]
        assert helper["profiles"] == SUMMED
        assert helper["volumes"] == ["ca:/ca:ro", f"{name}:/helper"]
        assert helper["networks"] == [name]
        assert helper["read_only"] is True
        assert f"{name}:/volumes/{name}" in found["services"]["init"]["volumes"]
        assert name in found["services"]["superlink"]["networks"]
    runs = {name: run["command"] for name, run in found["services"].items() if name.partition("-")[0] == "run"}
    summed = [name for name, command in runs.items() if "--helpers ${HELPERS:-2}" in command]
    assert summed == ["run", *(f"run-{task}" for task in SUMMED[1:])]
    assert {command.rpartition(" ")[2] for command in runs.values()} == {"${OPTIONS:-}"}, "they come last"
    services = dict(zip(SUMMED, (found["services"][name] for name in summed), strict=True))
    assert {task: service["profiles"] for task, service in services.items()} == {task: [task] for task in SUMMED}
    same = [{**service, "profiles": [], "command": ""} for service in services.values()]
    assert same == [same[0]] * len(SUMMED), "services of runs differ by their task only"
    words = {task: service["command"].replace(f"--task {task} ", "--task T ") for task, service in services.items()}
    assert len({*words.values()}) == 1


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_accepts_the_unit(unit: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd; the `systemd-analyze` command is not installed")
    text = (DEPLOY / "systemd" / unit).read_text()
    assert PROGRAM in text
    (tmp_path / unit).write_text(text.replace(PROGRAM, str(Path(sys.executable).with_name("fedloom"))))
    done = subprocess.run(["systemd-analyze", "verify", tmp_path / unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_confines_its_service(unit: str) -> None:
    lines = (DEPLOY / "systemd" / unit).read_text().splitlines()
    for line in (
        *("User=fedloom", "UMask=0077", "StateDirectory=fedloom", "NoNewPrivileges=true", "ProtectSystem=strict"),
        *("ProtectHome=", "PrivateTmp=true", "Restart=on-failure", "RestartPreventExitStatus=2 3 4"),
    ):
        assert any(one.startswith(line) for one in lines)


MOST_EXPOSED = 2.0
"""Limit on the exposure level of a unit, from 0 to 10; 1.6 is measured, 4.0 was asked for."""


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_is_exposed_little_and_limited(unit: str) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd; the `systemd-analyze` command is not installed")
    path = DEPLOY / "systemd" / unit
    assert all(f"\n{limit}=" in path.read_text() for limit in ("TasksMax", "LimitNOFILE", "MemoryMax"))
    words = [
        "systemd-analyze",
        "security",
        "--no-pager",
        "--offline=true",
        f"--threshold={10 * MOST_EXPOSED:.0f}",
        path,
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout.splitlines()[-1:]


def test_a_helper_reads_no_home_and_has_a_user_of_its_own() -> None:
    lines = (DEPLOY / "systemd" / "fedloom-helper.service").read_text().splitlines()
    assert {"ProtectHome=true", "User=fedloom-helper", "StateDirectory=fedloom-helper"} <= {*lines}


def test_a_server_that_was_stopped_by_its_owner_stays_stopped() -> None:
    lines = (DEPLOY / "systemd" / "fedloom-server.service").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("RestartPreventExitStatus=")]
    assert str(128 + signal.SIGTERM) in line.split(), "exit code of a server after `fedloom stop`"
