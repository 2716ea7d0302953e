"""Observer of a helper: keys of forgotten runs are deleted while no message waits."""

import logging

import pytest

from client.secure.helper.app import HelperObserver
from client.secure.helper.helper_service import DAY, HOUR
from tests.client.secure.helper.test_keys import Clock, filled


def test_keys_of_a_run_without_messages_are_deleted_within_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fedloom.node")
    clock = Clock()
    state = filled(clock)
    observer = HelperObserver("localhost:9092", "ann", state, 2, clock)
    observer.idle()
    clock.now += 2 * DAY - HOUR + 1
    observer.idle()
    state.keys("toy", pytest.fail)
    clock.now += 2 * DAY - HOUR
    observer.idle()
    assert caplog.messages == []
    clock.now += HOUR + 1
    observer.idle()
    assert caplog.messages == ["run 'toy': keys deleted after 2 days without a message"]
    assert state.forget(0) == []
