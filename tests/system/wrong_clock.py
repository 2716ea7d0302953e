"""Run `fedloom` with a wrong clock: `python wrong_clock.py FILE ARGUMENTS...`; the file holds the seconds that it is ahead."""

import datetime
import runpy
import sys
from pathlib import Path

CLOCK = Path(sys.argv[1])


class WrongTime(datetime.datetime):
    """Time of a wrong clock; `time.time` stays right, since gRPC compares it with the system's clock."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "WrongTime":
        return super().now(tz) + datetime.timedelta(seconds=float(CLOCK.read_text()))


vars(datetime)["datetime"] = WrongTime
sys.argv[:2] = ["fedloom"]
runpy.run_module("deploy.cli", run_name="__main__", alter_sys=True)
