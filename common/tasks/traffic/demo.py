"""What the embedded demo sites measure."""

from common.tasks.traffic.vocabulary import SensorVariables


def demo_variables() -> SensorVariables:
    """Vehicles in the hour."""
    return SensorVariables(variables=("volume",))
