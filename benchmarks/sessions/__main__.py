"""`python -m benchmarks.sessions`: compute what the cache lacks, then write docs/results/sessions.md and sessions.json."""

from benchmarks.memory import Memory
from benchmarks.sessions.experiments import EXPERIMENTS, TUNING_SEED
from benchmarks.sessions.sets import SETTINGS
from benchmarks.sessions.study import study
from benchmarks.sessions.table import page
from benchmarks.sessions.training import Bench
from benchmarks.studies import parser, provenance, quietly, write


def main() -> None:
    """Compute and write."""
    by_key = {experiment.key: experiment for experiment in EXPERIMENTS}
    sets = [setting.key for setting in SETTINGS]
    arguments = parser("sessions", __doc__, list(by_key), seeds=3)
    arguments.add_argument("--sets", nargs="+", choices=sets, default=sets)
    options = arguments.parse_args()
    quietly()
    chosen = [by_key[key] for key in (by_key if options.only is None else options.only)]
    memory = Memory.of("sessions", options)
    studies = []
    for setting in SETTINGS:
        if setting.key in options.sets:
            bench = Bench(setting, options.data, memory)
            studies.append(study(bench, chosen, range(options.seeds)))
    if options.only is None:
        about, made_by = provenance("sessions")
        write(options.out, "sessions", {**about, "tuning_seed": TUNING_SEED}, memory, page(studies, made_by))


if __name__ == "__main__":
    main()
