"""`python -m benchmarks.traffic`: compute what the cache lacks, then write docs/results/traffic.md and traffic.json."""

import argparse
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.memory import Memory
from benchmarks.studies import parser, provenance, quietly, write
from benchmarks.traffic.claims import verdicts
from benchmarks.traffic.experiments import EXPERIMENTS, NETWORKS, ROLLING, STREETS, Experiment
from benchmarks.traffic.faults import faults
from benchmarks.traffic.newcomers import newcomers
from benchmarks.traffic.sets import SETTINGS, SUMO, Setting
from benchmarks.traffic.study import Bench, Row
from benchmarks.traffic.table import (
    broken_sensors,
    new_sensors,
    other_networks,
    other_origins,
    page,
    section,
    streets,
    targets,
)
from common.errors import ConfigError


def main() -> None:
    """Compute and write."""
    options = _options()
    quietly()
    sections: list[str] = []
    memory = Memory.of("traffic", options)
    for setting in SETTINGS:
        if setting.key in options.sets:
            try:
                sections += [made for made in _sections(setting, options, memory) if made]
            except ConfigError as error:
                print(f"{setting.key} is left out: {error}", flush=True)
    if options.only is None:
        about, made_by = provenance("traffic")
        write(options.out, "traffic", about, memory, page(made_by, sections))


def _options() -> argparse.Namespace:
    keys = [one.key for one in (*EXPERIMENTS, *(one for rows in NETWORKS.values() for one in rows))]
    arguments = parser("traffic", __doc__, keys, seeds=3)
    sets = [setting.key for setting in SETTINGS]
    arguments.add_argument("--sets", nargs="+", choices=sets, default=sets)
    arguments.add_argument(
        "--uploads", type=int, default=0, help="a client, for a quick try with a cache of its own; 0: each set's"
    )
    return arguments.parse_args()


def _sections(setting: Setting, options: argparse.Namespace, memory: Memory) -> Iterator[str]:
    """Everything on one data set."""
    benches = [
        Bench(setting, options.data, memory, origin=origin, uploads=options.uploads)
        for origin in range(setting.origins)
    ]
    bench = benches[0]
    seeds, whole = range(options.seeds), options.only is None
    if setting is SUMO:
        known = _rows(bench, _chosen([one for one in EXPERIMENTS if one.key in STREETS], options), seeds)
        if whole:
            yield streets(setting, known, bench.lines("difference"))
        return
    known = _rows(bench, _chosen(EXPERIMENTS, options), seeds)
    others = {network: _rows(bench, _chosen(made, options), seeds) for network, made in NETWORKS.items()}
    rolling = [_rows(one, _chosen([e for e in EXPERIMENTS if e.key in ROLLING], options), range(1)) for one in benches]
    if whole:
        lines = {kind: bench.lines(kind) for kind in ("paper", "calibrated")}
        late = newcomers(setting, options.data, memory)
        broken = faults(setting, options.data, memory)
        yield section(setting, known, lines)
        yield other_networks(others, lines["paper"])
        yield other_origins(setting, rolling, [one.lines("calibrated") for one in benches])
        yield new_sensors(late)
        yield broken_sensors(broken)
        yield targets(verdicts(setting.key, {row.key: row for row in known}, lines, broken, late))


def _chosen(experiments: Iterable[Experiment], options: argparse.Namespace) -> list[Experiment]:
    return [one for one in experiments if options.only is None or one.key in options.only]


def _rows(bench: Bench, experiments: Iterable[Experiment], seeds: Sequence[int]) -> list[Row]:
    """Those of which something is known."""
    return [row for row in (bench.row(one, seeds) for one in experiments) if row.seeds]


if __name__ == "__main__":
    main()
