"""Runs of one round whose model starts from summed counts."""

from client.tasks.traffic.data.series import Sensors
from common.options import Scalar
from tests.support.sensors import MEASURES, QUICK, sensor

SENSORS = Sensors(tuple(sensor(number) for number in range(3)), MEASURES)

SMALL: dict[str, dict[str, Scalar]] = {
    "sessions": {"tasks.sessions.hidden": 4},
    "markets": {"tasks.markets.width": 16},
    "traffic": {key: value for key, value in QUICK.items() if key.startswith("tasks.traffic.")},
}


def counting(task: str, trust: str, **options: Scalar) -> dict[str, Scalar]:
    federation = {"federation.min-clients": 3, "federation.wait": 0.1, "secure-sums.min-sum": 3, "catalogue": "demo"}
    flat = {"task": task, "method": "fedavg", "rounds": 1, "run-id": "toy", "privacy.trust": trust, **SMALL[task]}
    return {**flat, **federation, "training.local-steps": 1, f"tasks.{task}.count-offset": True, **options}
