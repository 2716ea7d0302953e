"""Admission of clients at a SuperLink: new keys, keys that fail, revoked keys."""

import tomllib
from io import BytesIO, StringIO
from pathlib import Path
from zipfile import ZipFile

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.cli.build import build_fab_from_disk
from rich.console import Console

from common.config.run import RunConfig
from common.errors import ConnectError, RunError
from common.node_names import NodeKey
from deploy.keys.nodes import add_key, make_node_key, revoke_key
from deploy.superlink import control as admission
from deploy.superlink.control import Control, Gate, make_app
from deploy.superlink.superlink import free_port


class Controls(Control):
    """Control API that refuses one key some times and another key always."""

    def __init__(self, failures: int) -> None:
        super().__init__("nowhere:9", None)
        self.failures, self.registered, self.removed = failures, list[str](), list[NodeKey]()

    def register(self, public_key: Path) -> int | None:
        self.registered.append(public_key.name)
        if public_key.name == "broken.pub" or self.registered.count("half.pub") <= self.failures:
            raise RunError(f"registering {public_key.name}: it is no key")
        return 7

    def unregister(self, key: NodeKey) -> bool:
        self.removed.append(key)
        return True


def test_a_key_that_could_not_be_registered_is_retried_and_the_failure_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("half.pub", "broken.pub"):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(admission, "SEARCH_SECONDS", 0.0)
    output, control = StringIO(), Controls(failures=2)
    gate = Gate(control, tmp_path, Console(file=output, width=200))
    for _ in range(4):
        gate()
    assert [control.registered.count(name) for name in ("half.pub", "broken.pub")] == [3, 4]
    assert sorted(output.getvalue().splitlines()) == [
        "admitted half.pub",
        "registering broken.pub: it is no key",
        "registering half.pub: it is no key",
    ]


def test_a_key_that_is_revoked_is_removed_once_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "SEARCH_SECONDS", 0.0)
    key = ec.generate_private_key(ec.SECP384R1()).public_key()
    nodes, output = tmp_path / "nodes", StringIO()
    control = Controls(failures=-1)
    gate = Gate(control, nodes, Console(file=output, width=200))
    add_key(nodes, key, "shop-3")
    gate()
    revoke_key(nodes, "shop-3")
    gate()
    gate()
    assert control.removed == [key]
    assert output.getvalue().splitlines() == ["admitted shop-3", "removed shop-3: its key was revoked"]


def test_keys_that_were_revoked_while_no_server_ran_are_removed_at_the_start(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP384R1()).public_key()
    add_key(tmp_path, key)
    revoke_key(tmp_path, next(entry.fingerprint for entry in admission.list_nodes(tmp_path)))
    control = Controls(failures=-1)
    gate = Gate(control, tmp_path, Console(file=StringIO()))
    gate.remove_revoked()
    gate()
    assert control.removed == [key]


def test_the_app_has_all_properties_that_flower_recommends(tmp_path: Path) -> None:
    project = tomllib.loads((make_app(tmp_path / "app", RunConfig(run_id="one")) / "pyproject.toml").read_text())
    assert project["project"]["description"] == "fedloom run one"
    assert {"name", "version", "license"} <= project["project"].keys()


def test_the_app_is_closed_to_other_users(tmp_path: Path) -> None:
    app = make_app(tmp_path / "app", RunConfig(run_id="one"))
    copies = [path for path in app.rglob("*") if path.name != "pyproject.toml"]
    assert copies
    assert all(path.stat().st_mode & 0o077 == 0 for path in copies)


def test_the_bundle_of_the_app_has_every_file_but_those_of_the_compiler(tmp_path: Path) -> None:
    app = make_app(tmp_path / "app", RunConfig(run_id="one"))
    with ZipFile(BytesIO(build_fab_from_disk(app))) as bundle:
        names = {*bundle.namelist()}
    files = {path.relative_to(app).as_posix() for path in app.rglob("*") if path.is_file()}
    assert {name for name in files - names if not name.endswith((".proto", ".pyi"))} == set()


def test_a_control_port_where_nothing_answers_is_named(tmp_path: Path) -> None:
    control = Control(f"127.0.0.1:{free_port()}", None)
    make_node_key(tmp_path / "node.key")
    for call in (
        lambda: control.register(tmp_path / "node.key.pub"),
        lambda: control.submit(make_app(tmp_path / "app", RunConfig())),
        lambda: control.status(1),
        lambda: control.stop(1),
    ):
        with pytest.raises(ConnectError, match=r"no SuperLink answers at 127\.0\.0\.1:\d+; check --control and --ca"):
            call()
