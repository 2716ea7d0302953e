"""Messages about a SuperLink that refuses, and the app that it receives."""

import tomllib
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest
from flwr.cli.build import build_fab_from_disk

from common.config.run import RunConfig
from common.errors import ConnectError
from deploy.keys.nodes import make_node_key
from deploy.superlink.control import Control, make_app
from deploy.superlink.superlink import free_port


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
