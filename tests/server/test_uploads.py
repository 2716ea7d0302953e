"""The contract with Flower's HttpGrid, and that late content costs milliseconds."""

import time

import pytest
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, ObjectUnavailableError
from flwr.superlink.grid import http_grid

from server.uploads import quick_uploads

NAMES = vars(http_grid)


def test_http_grid_still_pulls_objects_by_that_name() -> None:
    assert "pull_objects" in http_grid.HttpGrid.pull_messages.__code__.co_names


def test_content_that_is_a_little_late_costs_milliseconds() -> None:
    looks = 0

    def pull(object_id: str) -> bytes:
        nonlocal looks
        looks += 1
        if looks < 3:
            raise ObjectUnavailableError(object_id)
        return b"content"

    start = time.monotonic()
    with quick_uploads(deadline=5.0):
        assert NAMES["pull_objects"](["a"], pull) == {"a": b"content"}
    assert time.monotonic() - start < 0.7, "Flower's own first pause is 0.8 s at least"


def test_content_that_never_comes_is_given_up_at_the_deadline() -> None:
    def pull(object_id: str) -> bytes:
        raise ObjectUnavailableError(object_id)

    with quick_uploads(deadline=0.05), pytest.raises(ObjectPullError):
        NAMES["pull_objects"](["a"], pull)


def test_afterwards_flower_is_as_before() -> None:
    before = NAMES["pull_objects"]
    with pytest.raises(RuntimeError, match="inside"), quick_uploads(deadline=1.0):
        raise RuntimeError("inside")
    assert NAMES["pull_objects"] is before
