"""Wrong use of the command: one line on stderr, exit status 2 (3 for data), and no file written."""

import json
import socket
import sys
from pathlib import Path

import pytest

from common.tasks.rules.vocabulary import demo_catalogue
from deploy.cli import main
from tests.system.desk import NETWORK


def answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str | Path
) -> tuple[int, str]:
    """Return exit status and stderr of the command."""
    monkeypatch.setattr(sys, "argv", ["fedloom", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0), capsys.readouterr().err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, homes: Path) -> Path:
    """Return a working directory with good and bad files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDLOOM_RUNS", raising=False)
    table = homes.read_text()
    header, rule = table.splitlines()[:2]
    strange = {"trigger_device": "Lihgt", "action_device": "Lihgt"}
    cells = dict(zip(header.split(","), rule.split(","), strict=True)) | strange
    files = {
        "good.csv": table,
        "empty.csv": "",
        "header.csv": header + "\n",
        "columns.csv": table.replace("trigger_device,", "triger_device,", 1),
        "types.csv": f"{header}\n{','.join(cells[name] for name in header.split(','))}\n",
        "typo.toml": 'method = ["fedavg"]\n',
        "other.json": json.dumps({"entities": ["Light"], "relations": ["turns on → turn on"]}),
        "none.json": "{}",
        "clicks.txt": "a b\n",
        "demo.json": demo_catalogue().to_json(),
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    return tmp_path


@pytest.mark.parametrize(
    ("status", "words", "text"),
    [
        (2, "up --method fedrul", "unknown method 'fedrul'; did you mean 'fedrule'?"),
        (2, "up --task rule", "unknown task 'rule'; did you mean 'rules'?"),
        (2, "up --set algorithm.fedrule.lamm=1", "unknown option 'algorithm.fedrule.lamm'; did you mean"),
        (2, "up --set algorithm.fedrule.lam=abc", "'algorithm.fedrule.lam': Input should be a valid number"),
        (2, "up --set rounds=2.5", "'rounds': Input should be a valid integer"),
        (2, "up --set lam", "write key=value"),
        (2, "up --rounds 0", "'rounds': Input should be greater than or equal to 1"),
        (2, "up --run-id ../x", "invalid run id '../x'; use up to 100 letters"),
        (2, "up --resume nobody", "no run 'nobody' in"),
        (2, "up --policy typo.toml", "policy typo.toml, line 1: unknown option 'method'; did you mean 'methods'?"),
        (2, "up --policy absent.toml", "policy absent.toml: No such file"),
        (3, "up --data absent.csv", "absent.csv: no such file or folder"),
        (3, "up --data empty.csv", "empty.csv: the file is empty"),
        (3, "up --data header.csv", "header.csv: the file has a header but no rows"),
        (
            3,
            "up --data columns.csv",
            "no column 'trigger_device'; 'triger_device' is near: rename it, or say --column trigger_device=",
        ),
        (
            3,
            "up --data types.csv --catalogue demo.json",
            "types.csv: no row can be used: 1 row skipped: the vocabulary lacks their device types",
        ),
        (3, "up --data good.csv --clients 41", "cannot partition 40 homes among 41 clients; set 1 to 40 clients"),
        (3, "up --clients 99999", "homes among 99999 clients; set 1 to "),
        (3, "up --catalogue absent.json", "absent.json: No such file"),
        (3, "up --catalogue none.json --data good.csv", "not a vocabulary of device types and relations: entities"),
        (3, "up --catalogue other.json", "the embedded data do not fit the vocabulary of this federation"),
        (2, "up --data good.csv --test held-out.txt", "--test does not apply to task rules"),
        (2, "simulate --task sessions --test held-out.txt", "set --data to your own data"),
        (3, "up --task sessions --data clicks.txt --test absent.txt", "absent.txt: No such file"),
        (3, "serve --catalogue absent.json", "absent.json: No such file"),
        (3, "simulate --clients 99999", "homes among 99999 clients; set 1 to "),
        (2, "recommend", "no completed run in"),
        (2, "recommend --run nobody", "no run 'nobody' in"),
        (2, "report nobody", "no run 'nobody' in"),
        (2, "join --server localhost:1", "--ca is missing"),
        (2, "join --server localhost:1 --ca absent.pem", "cannot read absent.pem (No such file"),
        (2, "join --server localhost:1 --insecure --shard 2/2", "use a shard from 0/2 to 1/2"),
        (2, "join --server localhost:1 --insecure --name a/b", "--name 'a/b': "),
        (2, "join --server localhost --insecure", "is not HOST:PORT"),
        (3, "join --server localhost:1 --insecure --data absent.csv", "absent.csv: no such file or folder"),
        (
            2,
            "join --server localhost:1 --insecure --data good.csv --test held-out.txt",
            "set --task to one of: sessions",
        ),
        (2, "nodes add absent.pub", "cannot read key file absent.pub (No such file"),
    ],
)
def test_one_line_names_the_error(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: int,
    words: str,
    text: str,
) -> None:
    before = sorted(folder.rglob("*"))
    exit_status, error = answer(monkeypatch, capsys, *words.split())
    assert text in error
    assert error.startswith("fedloom: ")
    assert error.count("\n") == 1
    assert exit_status == status
    assert sorted(folder.rglob("*")) == before


def test_a_taken_port_is_named_with_its_option(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        status, error = answer(monkeypatch, capsys, "serve", "--host", "127.0.0.1", "--port", str(port))
    assert status == 2
    assert f"port {port} of 127.0.0.1: Address already in use; choose another with --port" in error


def test_a_finished_run_is_not_overwritten_and_names_close_users(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    single = "lone," + ",".join(["Light", "a", "", "", "", ""])
    table = (folder / "good.csv").read_text()
    (folder / "odd.csv").write_text(f"{table}{table.splitlines()[1]}\n{single}\n")
    monkeypatch.setattr(
        sys,
        "argv",
        ["fedloom", "simulate", "--data", "odd.csv", "--clients", "3", *NETWORK, "--rounds", "1", "--run-id", "one"],
    )
    main_ok()
    assert "odd.csv: 1 duplicate rule dropped" in capsys.readouterr().err
    result = (folder / "runs" / "one" / "result.json").read_bytes()

    for words, text in {
        "simulate --run-id one": "run 'one' exists; resume it with --resume one or choose another --run-id",
        "up --run-id one": "run 'one' exists; resume it",
        "simulate --resume one --data odd.csv": "run 'one' has done its one round; set more with --rounds",
        "up --resume one --rounds 2": "no clients of run 'one' in",
    }.items():
        status, error = answer(monkeypatch, capsys, *words.split())
        assert (status, error.count("\n")) == (2, 1)
        assert text in error
    assert (folder / "runs" / "one" / "result.json").read_bytes() == result

    status, error = answer(monkeypatch, capsys, "recommend", "--data", "odd.csv", "--user", "home-0000")
    assert status == 3
    assert "no user 'home-0000' among its 41 users; did you mean 'home-000" in error


def main_ok() -> None:
    """Run the command, which must succeed."""
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
