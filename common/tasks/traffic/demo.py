"""Vocabulary of the generated demo sensors."""

from common.tasks.traffic.vocabulary import SensorVariables


def demo_variables() -> SensorVariables:
    """Return the demo's variable: vehicles per hour."""
    return SensorVariables(variables=("volume",))
