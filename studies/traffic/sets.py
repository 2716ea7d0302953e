"""Data sets of the traffic study."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from studies.harness.experiment import Experiment, Settings, task_options
from studies.traffic.experiments import EXPERIMENTS, HELPED, RIDGE, ROLLING, STREETS, at_origin


@dataclass(frozen=True)
class Setting:
    """One data set and its training protocol.

    Args:
        key: Short name.
        title: Heading on the page.
        about: Split and reduction of the data, in a sentence.
        cohort: Share of the clients drawn in a round.
        days: Days up to the origin that are used; 0 for all.
        back: Days between two origins; the first origin is the end of the data.
        origins: Number of origins.
        task: Options of the task that the set needs.
        rows: Rows that are run on it; empty for all.
        seeds: Largest number of seeds of a row.
    """

    key: str
    title: str
    about: str
    cohort: float
    days: int = 0
    back: int = 0
    origins: int = 1
    task: Settings = field(default_factory=dict)
    rows: tuple[str, ...] = ()
    seeds: int = 100

    def experiments(self, origin: int = 0) -> list[Experiment]:
        """Return the rows at an origin, with the set's protocol in their configuration."""
        protocol: Mapping[str, bool | int | float | str] = {
            "federation.cohort": self.cohort,
            **task_options("traffic", self.task),
        }
        kept = [one for one in EXPERIMENTS if not self.rows or one.key in self.rows]
        chosen = [one for one in kept if not origin or one.key in ROLLING]
        adapted = [
            replace(one, settings={**one.settings, **protocol}, seeds=min(one.seeds, self.seeds)) for one in chosen
        ]
        if not self.rows or RIDGE.key in self.rows:
            summed = (RIDGE,) if origin else (RIDGE, *HELPED)
            adapted += [replace(one, settings={**one.settings, **task_options("traffic", self.task)}) for one in summed]
        return [at_origin(one, origin) for one in adapted] if origin else adapted


BOROONDARA = Setting(
    "boroondara",
    "Boroondara, 105 approaches as clients",
    "31 days, 25 / 3 / 3 for training, validation and test. The test is Sunday to Tuesday and does not cover a week.",
    0.1,
    back=3,
    origins=3,
)
TEN = Setting(
    "ten",
    "Ten sites, last 365 days",
    "292 / 36 / 37 days. Outages of three hours or more are filled; filled values count neither in errors nor in satisfaction.",
    1.0,
    days=365,
    back=91,
    origins=4,
)
SUMO = Setting(
    "sumo",
    "SUMO, 100 streets as clients",
    "`fedloom data sumo`: six variables a second for an hour. 40 seconds in, the next 10 out (the paper's window, shifted by"
    " one, contains 39 of the 40 seconds to be forecast). The property is template 4: number of vehicles less occupancy, each"
    " in its own deviations.",
    0.1,
    task={
        "history": 40,
        "horizon": 10,
        "slice": "latest",
        "property": "difference",
        "pair": "vehicle_number,occupancy",
    },
    rows=STREETS,
)
FHWA = Setting(
    "fhwa",
    "Traffic of 51 states, a reading a day",
    "Counted vehicles of each state and day, 2018 to June 2020. 28 days in, a week out; a tenth of the days is the test part, a"
    " tenth before it the validation part. One seed. The second test part is the lockdown of spring 2020, under properties of"
    " 2018 and 2019.",
    0.2,
    back=182,
    origins=2,
    task={"history": 28, "horizon": 7},
    rows=("local", "fedavg", "fedrep", "ifca", "fedstl", "ridge", "default"),
    seeds=1,
)
SETTINGS = (BOROONDARA, TEN, SUMO, FHWA)
