"""`flwr run .` of the repository itself, in Flower's own simulation."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.desk import ROOT
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


def words(part: str) -> str:
    """Return the block of the how-to page that holds a part."""
    [block] = [block.text for block in blocks(ROOT / "docs/howto/flower-simulation.md") if part in block.text]
    return block


def test_the_words_of_the_page_train_the_same_apps_in_a_fresh_shell(tmp_path: Path) -> None:
    app = checkout(tmp_path / "app")
    (app / ".venv").symlink_to(Path(sys.prefix))
    home = {"HOME": str(tmp_path), "FLWR_HOME": str(tmp_path / "flwr"), "FEDLOOM_STATE_DIR": str(tmp_path / "state")}
    home |= {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "FEDLOOM_DATA": "demo:0-40"}

    def shell(text: str) -> subprocess.CompletedProcess[str]:
        command = ["/bin/bash", "-ec", text]
        return subprocess.run(command, cwd=app, env=home, capture_output=True, check=False, text=True, timeout=400)

    text = words("num-supernodes").replace("rounds=5", "rounds=2")
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
    values = json.loads(result.read_text())
    assert (values["status"], values["rounds_done"]) == ("completed", 2)
    assert sorted(values["clients"]) == [f"client-{k}" for k in range(4)]
    assert list(tmp_path.glob("state/client-0/*/*/memory.safetensors"))
