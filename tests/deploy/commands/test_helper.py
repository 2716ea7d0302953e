"""Commands `helper` and `keys show`."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from common.node_names import fingerprint
from deploy.cli.app import app
from deploy.keys.nodes import load_public_key, make_node_key

pytestmark = pytest.mark.usefixtures("here")


def command(*words: str) -> Result:
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize("words", ["keys show own.key", "keys show own.key.pub", "helper --key own.key --fingerprint"])
def test_the_fingerprint_of_a_key_is_printed(words: str) -> None:
    make_node_key(Path("own.key"))
    expected = fingerprint(load_public_key(Path("own.key.pub")))
    assert command(*words.split()).stdout.strip() == expected
    if words.startswith("keys"):
        assert json.loads(command(*words.split(), "--json").stdout) == {"fingerprint": expected}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "--key is missing; create one with fedloom keys node PATH"),
        ("--key none.key --fingerprint", "cannot read key file none.key"),
        ("--key own.key", "--server is missing"),
        ("--key own.key --server localhost:9092", "--ca is missing"),
        ("--key own.key --server localhost:9092 --ca none.pem", "cannot read none.pem"),
        ("--key own.key --server localhost --ca own.key.pub", "invalid server address"),
        ("--key own.key --server localhost:9092 --ca own.key.pub --name a/b", "a/b"),
    ],
)
def test_wrong_options_are_named(words: str, reason: str) -> None:
    make_node_key(Path("own.key"))
    assert reason in str(command("helper", *words.split(), "--state-dir", "state").exception)
    assert not Path("state").exists()
