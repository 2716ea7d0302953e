"""What the results page says in words; every figure in it is filled in."""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.rules.claims import NAMES, duel, mean_of
from benchmarks.rules.experiments import EVALUATE_EVERY, ROUNDS, TUNING_SEED, VALIDATION_SHARE
from benchmarks.rules.study import Row, Study

CONSTANTS = {"rounds": ROUNDS, "tuning_seed": TUNING_SEED, "share": f"{VALIDATION_SHARE:.0%}", "every": EVALUATE_EVERY}

INTRODUCTION = """# Rule recommendation on the IFTTT set

{made_by}

Every figure is measured by that script, which runs the ServerApp and ClientApp that users run (`fedloom simulate`):
one client a home, up to {rounds} rounds of 3 local steps, λ = 1, dropout 0.5, homes of more than two devices.
GraphRule is one client that holds all homes. Model `paper` is the paper's (one pool of negatives), `default` what
users get (five pools).

**How rates and rounds were chosen.** On one seed that is not reported ({tuning_seed}), with {share} of the rules left
after the test rules held out for validation; the point of the grid and the round (a multiple of {every}) of least
validation loss. Then each reported seed trains on everything but its test rules for that many rounds and is measured
once. A seed decides the split, the negatives, the initial model and the dropout masks; all methods see the same
splits and test negatives.

**Metrics** are means over homes with a test rule; ± is the standard deviation over seeds. MR counts from 0, as the
paper's tables do; MR(RT) leaves out relations already on that pair in training. HR@N ranks every rule that could be
added, with the rule filter only triples (trigger type, action type, relation) seen in anybody's training rules. The
*paper* rows are its Table 4: other entities and relations, so only the order of methods compares. The floors count
training rules, and two or three numbers turn the counts into logits, fitted on training examples with each rule left
out of its own counts."""

SETUP = """## Setup {setup}: {about}

{homes} homes, {entities} device types, {relations} relations, {rules} rules. On seed 0: {tested_homes} homes with
{test_rules} test rules. At most {seeds} seeds a row; the column says how many."""

PAIRED = """First minus second, mean ± standard deviation over the seeds both have, then the number of seeds in which
the first is better. Lower is better for loss and MR."""

LEAK = """A home's devices are known only through its rules, so a device that occurs in test rules alone stands
isolated in the training graph and tells that a test rule exists: {leak} of the test rules have such an end. Here they
are left out, and so are negatives with such an end. The main table has them, as the paper's does."""

TUNED = """Least validation loss on seed {tuning_seed} and its round."""

CONTENDERS = ("fedrule-adam", "default-fedrule", "default-counts")

RIVALS = (
    ("fedrule-adam", "fedgnn-adam"),
    ("fedrule-server", "fedgnn-adam"),
    ("fedrule-server", "fedgnn-server"),
    ("fedrule-sgd", "fedgnn-sgd"),
    ("default-fedrule", "fedrule-adam"),
    ("default-fedrule", "counts-triple"),
    ("default-counts", "counts-triple"),
)


def in_short(rows: Mapping[str, Row]) -> str:
    """One line a comparison that matters: who wins on what, in how many seeds."""
    lines = []
    for first, second in ((rows[a], rows[b]) for a, b in RIVALS if a in rows and b in rows):
        duels = {name: duel(first, second, metric) for metric, name in NAMES.items()}
        score = ", ".join(f"{name} {d.won}/{len(d.differences)}" for name, d in duels.items())
        lines.append(f"- {first.title} against {second.title}, seeds won: {score}.")
    return "\n".join(lines)


def against_floors(rows: dict[str, Row]) -> str:
    """Where each contender beats the best count floor on the mean, and where not."""
    floors = [row for key, row in rows.items() if key.startswith("counts-")]
    sentences = []
    for row in (rows[key] for key in CONTENDERS if key in rows):
        verdicts = [f"{name} {_against(row, floors, metric)}" for metric, name in NAMES.items()]
        sentences.append(f"{row.title}: {'; '.join(verdicts)}.")
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _against(row: Row, floors: Sequence[Row], metric: str) -> str:
    best = min if metric in ("loss", "mr0") else max
    own, floor = mean_of(row, metric), best(mean_of(f, metric) for f in floors)
    won = best(own, floor) == own and own != floor
    return f"{own:.3f} {'**beats**' if won else 'does not beat'} {floor:.3f}"


def unfinished(study: Study) -> Iterator[str]:
    """What the table lacks, if it lacks anything."""
    short = [row.title for row in study.rows if 0 < len(row.seeds) + len(row.failures) < study.asked_seeds]
    if study.absent:
        yield f"**Not run (yet):** {'; '.join(study.absent)}."
    if short:
        yield f"**Fewer than {study.asked_seeds} seeds (so far):** {'; '.join(short)}. Their ± and wins rest on those alone."
