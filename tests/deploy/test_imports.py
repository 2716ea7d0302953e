"""Light start of the command line, in fresh interpreters: no heavy package. Times are in tests/deploy/cli/test_start.py."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from client.data.read import read_all
from client.tasks.registry import CLIENT_TASKS
from common.config.parse import parse
from deploy.simulation.grid import simulate
from deploy.superlink.superlink import free_port

HEAVY = ("torch", "torch_geometric", "sklearn", "scipy", "pandas", "pyarrow", "flwr", "matplotlib")

PROGRAM = """
import json, runpy, sys
imported = {}
for words in json.loads(sys.argv[1]):
    sys.argv = ["fedloom", *words.split()]
    try:
        runpy.run_module("deploy.cli", run_name="__main__")
    except SystemExit as exit:
        assert not exit.code, (words, exit.code)
    imported[words] = sorted({name.partition(".")[0] for name in sys.modules} | {"torch._C"} & {*sys.modules})
print(json.dumps(imported), file=sys.stderr)
"""


def run(folder: Path, *commands: str) -> dict[str, set[str]]:
    """Return command -> the packages that it and those before it import, in one interpreter."""
    program = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=True)
    return {words: set(names) for words, names in json.loads(done.stderr.splitlines()[-1]).items()}


def modules_after(program: str, folder: Path) -> set[str]:
    """Return the modules that a program imports."""
    program = f"{program}\nimport json, sys; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
    return {*json.loads(done.stdout)}


@pytest.fixture(autouse=True)
def source_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


LIGHT = (
    *("keys node node.key", "keys server", "nodes list", "nodes --help", "budget", "budget --help"),
    *("status --state-dir .", "pause --state-dir .", "resume --state-dir .", "tasks", "methods"),
    *("config --list", "up --help", "ui --help", "recommend --help", "forecast --help"),
)


def test_a_light_command_imports_nothing_heavy(tmp_path: Path) -> None:
    imported = run(tmp_path, *LIGHT)
    assert [*imported] == [*LIGHT]
    assert {words: names & {*HEAVY} for words, names in imported.items() if names & {*HEAVY}} == {}


def test_a_model_of_sums_answers_without_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDLOOM_RUNS", str(tmp_path))
    commands = []
    for task in CLIENT_TASKS:
        solved = {"task": task, "method": "ridge", "rounds": 3, "federation.min-clients": 1}
        dataset = read_all(task, "demo:0-2")
        simulate(parse({**solved, "run-id": task}), dataset, tmp_path)
        if task != "traffic":
            item = f" --item {dataset.vocabulary.items[0]}" if task == "markets" else ""
            commands.append(f"recommend --run {task} --data demo:0-2{item}")
    imported = run(tmp_path, *commands)
    assert {
        words: names & {"flwr", "sklearn", "torch._C"}
        for words, names in imported.items()
        if names & {"flwr", "sklearn", "torch._C"}
    } == {}


def test_the_live_page_imports_nothing_heavy(tmp_path: Path) -> None:
    program = """
import deploy.pages.live
from deploy.pages.live_data import read_detail
from deploy.pages.live_data import summarize
from pathlib import Path
from tests.support.ui import a_round, a_start, write_run
write_run(Path(), "r1", [a_start(), a_round(1)])
assert summarize(Path(), "r1") and read_detail(Path(), "r1")
"""
    assert not modules_after(program, tmp_path).intersection(HEAVY)


@pytest.mark.parametrize("task", ["rules", "traffic", "ratings", "sessions", "markets"])
def test_a_client_of_generated_data_imports_only_what_it_uses(task: str, tmp_path: Path) -> None:
    program = f"""
import deploy.federation.client
from client.data.read import read_partition
from client.tasks.registry import build_learner
from common.config.parse import parse
build_learner(parse({{"task": "{task}"}}), read_partition("{task}", "demo", (0, 4)))
"""
    unused = {"torch_geometric", "sklearn", "pandas", "pyarrow", "matplotlib", "fastapi"}
    assert not unused.intersection(modules_after(program, tmp_path))


def test_a_client_of_its_own_table_does_not_import_the_table_engine(tmp_path: Path) -> None:
    tasks = ("traffic", "ratings")
    for task in tasks:
        CLIENT_TASKS[task].write(tmp_path / f"{task}.csv", read_all(task, "demo:0-4"))
    program = f"""
import deploy.federation.client
from client.app import _build_learner
from client.settings import ClientSettings
from common.config.parse import parse
from common.tasks.registry import demo_vocabulary
for task in {tasks}:
    _build_learner(ClientSettings(data=task + ".csv"), parse({{"task": task}}), demo_vocabulary(task))
"""
    assert "pyarrow" not in modules_after(program, tmp_path)


WAITING_PROGRAM = """
import json, os, runpy, signal, sys
from client.owner.view import OwnerView

def away(self, error):
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

OwnerView.away = away
server, *tasks = sys.argv[1:]
for task in tasks:
    own = f"--data {task}.csv --task {task} --name ann --state-dir {task}"
    sys.argv = ["fedloom", "join", "--server", server, "--insecure", *own.split()]
    try:
        runpy.run_module("deploy.cli", run_name="__main__")
    except SystemExit as end:
        assert not end.code
"""


def test_clients_that_wait_for_a_server_have_read_their_data_without_pytorch(tmp_path: Path) -> None:
    for task in CLIENT_TASKS:
        CLIENT_TASKS[task].write(tmp_path / f"{task}.csv", read_all(task, "demo:0-4"))
    command = [sys.executable, "-c", WAITING_PROGRAM, f"127.0.0.1:{free_port()}", *CLIENT_TASKS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    imported = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(imported) == len(CLIENT_TASKS)
    unused = {*HEAVY, "sqlalchemy", "ray", "starlette"} - {"flwr"}
    assert not unused.intersection(imported[-1])
    assert len([*tmp_path.glob("*/ann/*/client.json")]) == len(CLIENT_TASKS)


def test_a_server_without_a_planner_does_not_import_scipy(tmp_path: Path) -> None:
    imported = modules_after("import server.app, server.run", tmp_path)
    assert not {"scipy", "sklearn", "server.planning.bgt"}.intersection(imported)


def test_a_fork_server_for_a_server_alone_imports_no_pytorch(tmp_path: Path) -> None:
    program = """
from deploy.federation import fork_server
fork_server._import((*fork_server.SUPERLINK, *fork_server.SERVER_APP))
"""
    assert modules_after(program, tmp_path).intersection({"server.run", "torch"}) == {"server.run"}
