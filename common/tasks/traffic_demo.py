"""What the embedded demo sites measure."""

from common.tasks.traffic import Measures


def demo_measures() -> Measures:
    """Vehicles in the hour."""
    return Measures(variables=("volume",))
