"""The tree of errors, and the place that a data error names."""

from pathlib import Path

import pytest

from common import errors
from common.errors import DataError, FedloomError, VocabularyError

ERRORS = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_derives_from_the_root_and_is_in_the_drawn_tree(error: type[Exception]) -> None:
    assert issubclass(error, FedloomError)
    assert error.__name__ in (errors.__doc__ or "")
    assert str(error("what is wrong")) == "what is wrong"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ((Path("a.csv"),), "a.csv: bad"),
        ((Path("a.csv"), 3), "a.csv, line 3: bad"),
        (("a.csv", 3, "user"), "a.csv, line 3, column 'user': bad"),
        (("a.csv", 0, "user"), "a.csv, column 'user': bad"),
        (("", 3), "line 3: bad"),
    ],
)
def test_a_data_error_names_file_line_and_column(place: tuple[str, int, str], text: str) -> None:
    error = VocabularyError("bad", *place)
    assert str(error) == text
    assert isinstance(error, DataError)
    assert error.path == str(place[0])
