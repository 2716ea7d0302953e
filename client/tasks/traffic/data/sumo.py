"""Simulated traffic: SUMO on a generated grid of streets, as six measures of the busiest edges.

The paper records these measures (algorithms.md §3.8) on a map of Nashville; the grid needs no map.
"""

import csv
import subprocess
import tempfile
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

from common.arrays import Floats
from common.errors import ConfigError, DataError, RunError
from common.tasks.traffic.vocabulary import SensorVariables

VARIABLES = {
    "vehicle_number": "LAST_STEP_VEHICLE_NUMBER",
    "occupancy": "LAST_STEP_OCCUPANCY",
    "mean_speed": "LAST_STEP_MEAN_SPEED",
    "co2": "VAR_CO2EMISSION",
    "fuel": "VAR_FUELCONSUMPTION",
    "noise": "VAR_NOISEEMISSION",
}
"""Our names and TraCI's: vehicles, share of the length, m/s, mg in the step, mg in the step, dB."""
MEASURES = SensorVariables(variables=tuple(VARIABLES), step_seconds=1)
"""Under which the recording is read second by second."""

GRID = 7
"""Junctions along each side: 168 edges."""
BLOCK = 200
"""Metres between junctions."""
WARM_UP = 200
"""Seconds before the first that is recorded."""
DEPARTURES = 2.0
"""Vehicles that set out each second."""

START = np.datetime64("2024-01-01T07:00:00", "s")
"""Invented time of the first second recorded."""


class Vehicle(NamedTuple):
    """A type of vehicle, its class in SUMO, its emission class, and its share of the traffic."""

    name: str
    vehicle_class: str
    emission: str
    share: float


VEHICLES = (
    Vehicle("car", "passenger", "HBEFA3/PC_G_EU4", 0.75),
    Vehicle("truck", "truck", "HBEFA3/HDV_D_EU4", 0.15),
    Vehicle("motorcycle", "motorcycle", "HBEFA3/LDV_G_EU6", 0.1),
)


def record_sumo(out: Path, *, edges: int = 100, seconds: int = 3600, seed: int = 0) -> None:
    """Simulate and write `timestamp,site,<six measures>`, a row for each second and edge.

    Recorded are the busiest edges, by their mean number of vehicles. `MEASURES` go beside `out`, as JSON.

    Raises:
        ConfigError: SUMO is not installed.
        DataError: More edges than the network has, or no second to record.
        RunError: SUMO failed.
    """
    home, libsumo = _sumo()
    if seconds < 1:
        raise DataError("record at least one second")
    with tempfile.TemporaryDirectory() as folder:
        network = _network(Path(folder), home, seed)
        names = _edges(network)
        if not 1 <= edges <= len(names):
            raise DataError(f"the network has {len(names)} edges; record 1 to {len(names)} of them, not {edges}")
        trips = _trips(Path(folder), names, seconds + WARM_UP, np.random.default_rng(seed))
        values = _recorded(libsumo, network, trips, names, seconds, seed)
    busiest = np.sort(np.argsort(-values[:, :, 0].mean(axis=0), kind="stable")[:edges])
    _write(out, [names[edge] for edge in busiest], values[:, busiest])
    out.with_suffix(".json").write_text(MEASURES.to_json(), "utf-8")


def _sumo() -> tuple[Path, ModuleType]:
    """Return SUMO's folder and its library."""
    try:
        package, library = import_module("sumo"), import_module("libsumo")
    except ImportError:
        raise ConfigError("SUMO is not installed; install it with: pip install eclipse-sumo libsumo") from None
    return Path(str(package.__file__)).parent, library


def _network(folder: Path, home: Path, seed: int) -> Path:
    """Return a square grid with two lanes each way and blocks of uneven length."""
    path = folder / "grid.net.xml"
    command = [str(home / "bin" / "netgenerate"), "--grid", f"--grid.number={GRID}", f"--grid.length={BLOCK}"]
    command += ["--default.lanenumber=2", "--perturb-x=20", "--perturb-y=20", f"--seed={seed}", f"-o={path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"netgenerate failed: {done.stderr.strip()}")
    return path


def _edges(network: Path) -> list[str]:
    """Return the edges open to vehicles; names of edges within junctions begin with a colon."""
    root = import_module("xml.etree.ElementTree").parse(network).getroot()
    return sorted(edge.get("id") for edge in root.iter("edge") if not edge.get("id").startswith(":"))


def _trips(folder: Path, names: list[str], seconds: int, rng: np.random.Generator) -> Path:
    """Draw trips between edges by the skewed popularity of places."""
    path, count = folder / "trips.rou.xml", int(DEPARTURES * seconds)
    fame = rng.dirichlet(np.full(len(names), 0.7))
    ends = rng.choice(names, size=(count, 2), p=fame)
    kinds = rng.choice([vehicle.name for vehicle in VEHICLES], size=count, p=[vehicle.share for vehicle in VEHICLES])
    rows = zip(np.sort(rng.uniform(0, seconds, count)), kinds, ends, strict=True)
    types = (f'<vType id="{v.name}" vClass="{v.vehicle_class}" emissionClass="{v.emission}"/>' for v in VEHICLES)
    trips = (
        f'<trip id="{k}" type="{kind}" depart="{time:.2f}" from="{begin}" to="{end}" departLane="best"/>'
        for k, (time, kind, (begin, end)) in enumerate(rows)
    )
    path.write_text("\n".join(["<routes>", *types, *trips, "</routes>"]))
    return path


def _recorded(libsumo: ModuleType, network: Path, trips: Path, names: list[str], seconds: int, seed: int) -> Floats:
    """Record the variables, seconds × edges × variables."""
    codes = [getattr(libsumo.constants, name) for name in VARIABLES.values()]
    quiet = ("--no-step-log", "--no-warnings", "--duration-log.disable", "--time-to-teleport=120")
    values = np.zeros((seconds, len(names), len(codes)))
    try:
        libsumo.start(["sumo", "-n", str(network), "-r", str(trips), f"--seed={seed}", *quiet])
        for name in names:
            libsumo.edge.subscribe(name, codes)
        libsumo.simulationStep(WARM_UP)
        for second in range(seconds):
            libsumo.simulationStep()
            found = libsumo.edge.getAllSubscriptionResults()
            values[second] = [[found[name][code] for code in codes] for name in names]
    except (libsumo.TraCIException, libsumo.FatalTraCIError) as error:
        raise RunError(f"SUMO failed: {error}") from None
    finally:
        libsumo.close()
    return values


def _write(out: Path, names: list[str], values: Floats) -> None:
    times = (START + np.arange(len(values))).astype(str).tolist()
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("timestamp", "site", *VARIABLES))
        for time, edges in zip(times, values.tolist(), strict=True):
            writer.writerows((time, name, *measures) for name, measures in zip(names, edges, strict=True))
