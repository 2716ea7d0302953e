"""`python -m benchmarks.ratings`: compute what the cache lacks, then write docs/results/ratings.md and ratings.json."""

from benchmarks.memory import Memory
from benchmarks.ratings.experiments import EXPERIMENTS, TUNING_SEEDS
from benchmarks.ratings.sets import SETTINGS
from benchmarks.ratings.study import study
from benchmarks.ratings.table import page
from benchmarks.ratings.training import Bench
from benchmarks.studies import parser, provenance, quietly, write


def main() -> None:
    """Compute and write."""
    by_key = {experiment.key: experiment for experiment in EXPERIMENTS}
    sets = [setting.key for setting in SETTINGS]
    arguments = parser("ratings", __doc__, list(by_key), seeds=10)
    arguments.add_argument("--sets", nargs="+", choices=sets, default=sets)
    options = arguments.parse_args()
    quietly()
    chosen = [by_key[key] for key in (by_key if options.only is None else options.only)]
    memory = Memory.of("ratings", options)
    studies = []
    for setting in SETTINGS:
        if setting.key in options.sets:
            bench = Bench(setting, options.data, memory)
            studies.append(study(bench, chosen, options.seeds, authors=options.only is None))
    if options.only is None:
        about, made_by = provenance("ratings")
        write(options.out, "ratings", {**about, "tuning_seeds": TUNING_SEEDS}, memory, page(studies, made_by))


if __name__ == "__main__":
    main()
