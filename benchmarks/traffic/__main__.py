"""`python -m benchmarks.traffic`: compute what the cache lacks, then write docs/results/traffic.md and traffic.json."""

from benchmarks.studies import parser, provenance, quietly, write
from benchmarks.traffic.experiments import EXPERIMENTS
from benchmarks.traffic.faults import faults
from benchmarks.traffic.sets import SETTINGS
from benchmarks.traffic.study import Bench
from benchmarks.traffic.table import broken_sensors, page, section


def main() -> None:
    """Compute and write."""
    keys, sets = [experiment.key for experiment in EXPERIMENTS], [setting.key for setting in SETTINGS]
    arguments = parser("traffic", __doc__, keys, seeds=3)
    arguments.add_argument("--sets", nargs="+", choices=sets, default=sets)
    options = arguments.parse_args()
    quietly()
    chosen = keys if options.only is None else options.only
    sections, rows = [], {}
    for setting in SETTINGS:
        if setting.key in options.sets:
            bench = Bench(setting, options.data, options.cache, compute=not options.table_only)
            known = [bench.row(one, range(options.seeds)) for one in EXPERIMENTS if one.key in chosen]
            rows[setting.key] = {row.key: row.seeds for row in known}
            if options.only is None:
                lines = {kind: bench.lines(kind) for kind in ("paper", "calibrated")}
                sections.append(section(setting, [row for row in known if row.seeds], lines))
                sections.append(broken_sensors(faults(setting, options.data, options.cache)))
    if options.only is None:
        about, made_by = provenance("traffic")
        write(options.out, "traffic", {**about, "sets": rows}, page(made_by, sections))


if __name__ == "__main__":
    main()
