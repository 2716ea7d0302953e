"""What the embedded demo sites measure."""

from common.tasks.traffic.options import Measures


def demo_measures() -> Measures:
    """Vehicles in the hour."""
    return Measures(variables=("volume",))
