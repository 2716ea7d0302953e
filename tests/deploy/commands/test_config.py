"""`fedloom config`: list, explain and show."""

import json
import re

import pytest
from click.testing import Result
from typer.testing import CliRunner

from common.config.parse import option_keys
from common.errors import ConfigError
from deploy.cli.app import app


def call(words: str) -> Result:
    return CliRunner().invoke(app, ["config", *words.split()], env={"COLUMNS": "60"})


def output(words: str) -> str:
    done = call(words)
    assert done.exit_code == 0, done.exception
    return done.stdout


@pytest.mark.parametrize("words", ["list --json", "--list --json", "--json --list", "--json list"])
def test_every_option_is_listed_with_its_type_and_meaning(words: str) -> None:
    found = json.loads(output(words))
    assert {one["key"] for one in found} == set(option_keys())
    assert [one["key"] for one in found if not one["type"] or not one["meaning"]] == []


@pytest.mark.parametrize("words", ["privacy rounds", "list privacy rounds"])
def test_options_below_a_key_are_listed(words: str) -> None:
    keys = [line.split(" = ")[0] for line in output(words).splitlines() if not line.startswith(" ")]
    assert keys[0] == "rounds"
    assert all(key.startswith("privacy.") for key in keys[1:])


def test_an_option_is_explained_with_its_bounds_and_how_to_set_it() -> None:
    lines = output("explain federation.cohort").splitlines()
    assert lines[0] == "federation.cohort"
    assert lines[2:] == ["  type     number, > 0, ≤ 1", "  default  1.0", "  set by   --set federation.cohort=1.0"]
    assert "set by   --epsilon" in output("explain privacy.epsilon")
    assert "none or client or record" in output("explain privacy.unit")
    assert json.loads(output("explain seed --json"))["bounds"] == f"≥ 0, < {2.0**63:g}"


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("", "no option is named; name a key, such as privacy, or set --list"),
        ("privcy.epsilon", "unknown option 'privcy.epsilon'; did you mean 'privacy.epsilon'?"),
        ("lam", "unknown option 'lam'; did you mean 'algorithm.fedrule.lam'?"),
        ("explian", "unknown option 'explian'; did you mean 'explain'?"),
        ("xyzzy", "unknown option 'xyzzy'; list all with fedloom config --list"),
        ("explain privacy", "'privacy' is a section of 14 options; list them with fedloom config list privacy"),
    ],
)
def test_mistakes_are_answered_with_the_nearest_key(words: str, fault: str) -> None:
    done = call(words)
    assert isinstance(done.exception, ConfigError)
    assert re.fullmatch(re.escape(fault), str(done.exception))
