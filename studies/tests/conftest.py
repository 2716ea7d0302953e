"""The fixtures of the product's tests, for tests of the studies."""

from tests.conftest import _identity, pytest_configure

__all__ = ["_identity", "pytest_configure"]
