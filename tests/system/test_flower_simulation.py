"""`flwr run .` of the repository itself, in Flower's own simulation."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploy.federation.fork_server import flower_environment
from deploy.federation.processes import Processes
from deploy.files import write_file
from deploy.superlink.superlink import free_port
from tests.system.desk import ROOT, until
from tools.pages import blocks

pytestmark = pytest.mark.system
PROGRAMS = Path(sys.executable).parent
SHARED = ("pyproject.toml", "README.md", "LICENSE", "common", "server", "client", "deploy")


def checkout(folder: Path) -> Path:
    """Copy the app's files from git, as in a clone."""
    listed = subprocess.run(["git", "ls-files", "-z", *SHARED], cwd=ROOT, capture_output=True, check=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    return folder


def test_the_same_apps_run_in_flowers_simulation(tmp_path: Path) -> None:
    app, port = checkout(tmp_path / "app"), free_port()
    home = tmp_path / "flwr"
    connection = f'[superlink]\ndefault = "s"\n[superlink.s]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    write_file(home / "config.toml", connection.encode())
    variables = {
        "FLWR_HOME": str(home),
        "FEDLOOM_STATE_DIR": str(tmp_path / "state"),
        "FEDLOOM_RUNS": str(tmp_path / "runs"),
    }
    environment = flower_environment({**variables, "OMP_NUM_THREADS": "1"})
    with Processes() as processes:
        command = [PROGRAMS / "flower-superlink", "--simulation", "--insecure", "--port", str(port)]
        log = tmp_path / "superlink.log"
        processes.start("the SuperLink", command, log=log, environment=environment, folder=tmp_path)
        time.sleep(2)
        options = ["--federation-config", "num-supernodes=3", "--run-config", "rounds=2 federation.min-clients=3"]

        def submitted() -> bool:
            run = [str(PROGRAMS / "flwr"), "run", str(app), "s", *options]
            return subprocess.run(run, env=environment, capture_output=True, check=False).returncode == 0

        until(submitted, lambda: log.read_text(), 60)
        until(lambda: any(tmp_path.glob("runs/*/result.json")), lambda: log.read_text()[-4000:], 240)
    [result] = tmp_path.glob("runs/*/result.json")
    values = json.loads(result.read_text())
    assert (values["status"], values["rounds_done"]) == ("completed", 2)
    assert sorted(values["clients"]) == ["client-0", "client-1", "client-2"]
    assert list(tmp_path.glob("state/client-0/*/*/memory.safetensors"))


def words(part: str) -> str:
    """Return the block of the how-to page that holds a part."""
    [block] = [block.text for block in blocks(ROOT / "docs/howto/flower-simulation.md") if part in block.text]
    return block


def test_the_words_of_the_page_work_in_a_fresh_shell(tmp_path: Path) -> None:
    app = checkout(tmp_path / "app")
    (app / ".venv").symlink_to(Path(sys.prefix))
    home = {"HOME": str(tmp_path), "FLWR_HOME": str(tmp_path / "flwr"), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}

    def shell(text: str) -> subprocess.CompletedProcess[str]:
        command = ["/bin/bash", "-ec", text]
        return subprocess.run(command, cwd=app, env=home, capture_output=True, check=False, text=True, timeout=400)

    text = words("flwr run").replace("rounds=5", "rounds=2")
    try:
        done = shell(text)
        while "Failed to start local SuperLink within" in done.stdout + done.stderr:  # 15 s on a busy machine
            done = shell(text)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        assert shell(words("pkill")).returncode == 0
    assert "round 2/2: 4/4 clients" in done.stdout, done.stdout + done.stderr
    [result] = app.glob("runs/*/result.json")
    assert f"run completed; result in {result}" in done.stdout
