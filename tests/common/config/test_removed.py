"""Config keys of earlier releases: removed ones are refused."""

from pathlib import Path

import pytest

from common.config.keys import REMOVED
from common.config.parse import option_keys, parse, read_overrides
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


def test_the_table_names_no_key_of_this_release_but_for_removed_values() -> None:
    assert not {*option_keys()} & {key for key, removed in REMOVED.items() if removed.refused is None}
