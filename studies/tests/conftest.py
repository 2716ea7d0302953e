"""The fixtures of the product's tests, and the plug-ins of the studies, for tests of the studies."""

from studies.plugins import provide
from tests.conftest import _accepted_noise, _identity, pytest_configure, refused_noise

__all__ = ["_accepted_noise", "_identity", "pytest_configure", "refused_noise"]

provide()
