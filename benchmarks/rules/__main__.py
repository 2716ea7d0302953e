"""`python -m benchmarks.rules`: compute what the cache lacks, then write docs/results/rules.md and rules.json."""

from benchmarks.memory import Memory
from benchmarks.rules.experiments import EXPERIMENTS, TUNING_SEED
from benchmarks.rules.study import study
from benchmarks.rules.table import SETUPS, page
from benchmarks.rules.training import Bench
from benchmarks.studies import parser, provenance, quietly, write


def main() -> None:
    """Compute and write."""
    by_key = {experiment.key: experiment for experiment in EXPERIMENTS}
    arguments = parser("rules", __doc__, list(by_key), seeds=5)
    arguments.add_argument("--setups", nargs="+", choices=list(SETUPS), default=list(SETUPS))
    options = arguments.parse_args()
    quietly()
    chosen = [by_key[key] for key in (by_key if options.only is None else options.only)]
    memory = Memory.of("rules", options)
    studies = []
    for setup in options.setups:
        bench = Bench(options.data / "ifttt-recrules", setup, memory)
        studies.append(study(bench, chosen, range(options.seeds)))
    if options.only is None:
        about, made_by = provenance("rules")
        seconds = sum(sum(row.seconds) for one in studies for row in one.rows)
        made_by += f" {seconds:.0f} s behind the reported seeds."
        write(options.out, "rules", {**about, "tuning_seed": TUNING_SEED}, memory, page(studies, made_by))


if __name__ == "__main__":
    main()
