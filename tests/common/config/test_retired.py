"""Config keys of earlier releases: removed ones are refused, renamed ones are read and noted once."""

import logging
from pathlib import Path

import pytest

from common.config import retired
from common.config.parse import option_keys, parse, read_overrides
from common.config.retired import REMOVED, RENAMED
from common.errors import ConfigError
from common.options import Scalar
from deploy.federation.request import read_config_file
from tests.support.configurations import refusal


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("federation.error-feedback", True, "federation.error-feedback"),
        ("federation.error_feedback", True, "federation.error-feedback"),
        ("federation.keep", 0.2, "federation.keep"),
        ("federation.encoding", "top-k", "federation.encoding=top-k"),
    ],
)
def test_a_removed_option_is_refused_with_its_successor(key: str, value: Scalar, named: str, tmp_path: Path) -> None:
    error = f"{named} was removed in 0.2; use federation.encoding=int8"
    assert refusal({key: value}) == error
    with pytest.raises(ConfigError, match=f"^{error}$"):
        read_overrides([f"{key}={str(value).lower()}"])
    (file := tmp_path / "config.toml").write_text(
        f"rounds = 3\n{key} = {str(value).lower() if value is True else repr(value)}\n"
    )
    with pytest.raises(ConfigError, match=f"config.toml, line 2: {error}$"):
        read_config_file(file)


def test_a_removed_option_without_effect_is_dropped() -> None:
    """Stored configurations and servers of release 0.1 name all options."""
    former: dict[str, Scalar] = {"federation.keep": 0.1, "federation.error-feedback": "auto"}
    assert parse({**former, "federation.encoding": "int8"}) == parse({"federation.encoding": "int8"})


@pytest.fixture
def renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RENAMED, "federation.give-up", "federation.deadline")
    retired.note_renamed.cache_clear()


@pytest.mark.usefixtures("renamed")
def test_a_renamed_option_keeps_its_value_and_is_noted_once(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    with caplog.at_level(logging.WARNING):
        assert parse({"federation.give-up": 7.0}).federation.deadline == 7.0
        assert parse({"federation.give_up": 8.0}).federation.deadline == 8.0
    note = "federation.give-up is now federation.deadline; the old name works until 0.3"
    assert [record.getMessage() for record in caplog.records] == [note]
    assert read_overrides(["federation.give-up=7"]) == {"federation.deadline": 7}
    (file := tmp_path / "config.toml").write_text("[federation]\ngive-up = 9.0\n")
    assert read_config_file(file) == {"federation.deadline": 9.0}


@pytest.mark.usefixtures("renamed")
def test_an_option_that_is_set_by_both_names_needs_one_value() -> None:
    both = {"federation.give-up": 7.0, "federation.deadline": 8.0}
    assert refusal(both) == "federation.give-up is now federation.deadline, and both are set; remove federation.give-up"
    assert parse({**both, "federation.deadline": 7.0}).federation.deadline == 7.0


def test_the_tables_name_no_key_of_this_release_but_for_removed_values() -> None:
    keys = set(option_keys())
    assert not keys & RENAMED.keys()
    assert keys >= set(RENAMED.values())
    assert not keys & {key for key, removed in REMOVED.items() if removed.refused is None}
