"""Observer of a helper: keys of forgotten runs are deleted while no message waits."""

import logging
from contextlib import closing
from pathlib import Path

import pytest

from client.secure.helper.app import HelperObserver
from client.secure.helper.helper_state import HOUR
from common.errors import RefusedError
from tests.client.secure.helper.test_book import DAY, Clock, filled


def test_keys_of_a_run_without_messages_are_deleted_within_an_hour(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fedloom.node")
    clock = Clock()
    with closing(filled(tmp_path, clock=clock)) as book:
        observer = HelperObserver("localhost:9092", "ann", book, 2, clock)
        observer.idle()
        clock.now += 2 * DAY - HOUR + 1
        observer.idle()
        book.find_keys("toy")
        clock.now += 2 * DAY - HOUR
        observer.idle()
        assert caplog.messages == []
        clock.now += HOUR + 1
        observer.idle()
        assert caplog.messages == ["run 'toy': keys deleted after 2 days without a message"]
        with pytest.raises(RefusedError, match="over here"):
            book.find_keys("toy")
