"""A door in this process, whose orders the tests script."""

from collections.abc import Iterator

import pytest

from tests.support.doors import FakeNode, open_door


@pytest.fixture
def fake() -> Iterator[FakeNode]:
    with open_door() as node:
        yield node
