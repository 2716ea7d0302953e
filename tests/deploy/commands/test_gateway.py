"""Command `gateway`: options that are wrong, before anything is started."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.cli.app import app
from deploy.keys import make_node_key

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "--server is missing; give the HOST:PORT of the server above"),
        ("--server localhost:9092", "--ca is missing"),
        ("--server localhost:9092 --ca ca.pem", "--key is missing; create one with fedloom keys node PATH"),
        ("--server localhost:9092 --ca ca.pem --key none.key", "cannot read key file none.key"),
        ("--server localhost:9092 --ca none.pem --key own.key", "cannot read none.pem"),
        ("--server localhost --ca own.key.pub --key own.key", "invalid server address"),
        ("--server localhost:9092 --ca own.key.pub --key own.key --name a/b", "a/b"),
    ],
)
def test_wrong_options_are_refused_with_a_remedy(words: str, reason: str) -> None:
    make_node_key(Path("own.key"))
    done = CliRunner().invoke(app, ["gateway", *words.split()])
    assert reason in str(done.exception)
    assert not Path(".fedloom").exists()
