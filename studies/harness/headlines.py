"""Headlines of the five studies, shown first on their pages and in the table of README.md."""

from collections.abc import Iterator
from dataclasses import replace

from studies.harness.headline import Entry, Headline, Part
from studies.harness.results import Results
from studies.markets.experiments import SMALL
from studies.markets.figures import MarketsHeadline
from studies.ratings.figures import RatingsHeadline
from studies.rules.figures import RulesHeadline
from studies.sessions.figures import SessionsHeadline
from studies.traffic.figures import TrafficHeadline

_RULES, _G, _B, _ML, _X = "B/default", "gowalla/default", "boroondara/origin-0", "ml", "xmarket/pairs"


def _rules(data: str, measure: str, part: str, metric: str) -> RulesHeadline:
    """Return the headline of one setup and metric of rules."""
    rows: tuple[tuple[str, str, Part], ...] = (
        ("own relations", "own-relation", "alone"),
        ("relation frequency", "counts-relation", ""),
        ("FedAvg, paper's model", "fedgnn-server", ""),
        ("FedRule, paper's model", "fedrule-adam", "paper"),
        ("FedRule, default model", "default-fedrule", ""),
        ("default", "ridge", "default"),
        ("pooled counts", "counts-triple", "pooled"),
    )
    entries = tuple(Entry(label, f"{part}/{row}", metric, role) for label, row, role in rows)
    return RulesHeadline("rules", data, f"{measure} in %", higher=True, digits=0, scale=100, entries=entries)


HEADLINES = {
    "rules": _rules("IFTTT", "filtered HR@20", _RULES, "filtered_hr20"),
    "sessions": SessionsHeadline(
        "sessions",
        "Gowalla",
        "HR@20 in %",
        higher=True,
        digits=1,
        scale=100,
        entries=(
            Entry("FedAvg", f"{_G}/fedavg", "hr20"),
            Entry("FedGA, paper's model", f"{_G}/fedga", "hr20", "paper"),
            Entry("own history", f"{_G}/own-bigram", "hr20", "alone"),
            Entry("own history and pooled rules", f"{_G}/own-rules", "hr20", "pooled"),
            Entry("FedGA, default model", f"{_G}/default-sampled", "hr20"),
            Entry("default", f"{_G}/ridge", "hr20", "default"),
        ),
    ),
    "traffic": TrafficHeadline(
        "traffic",
        "Boroondara",
        "MSE",
        higher=False,
        digits=4,
        entries=(
            Entry("FedSTL, paper's model, equal rounds", f"{_B}/fedstl-rounds", "mse", "paper"),
            Entry("last week", f"{_B}/default", "last_week_mse"),
            Entry("weekly profile", f"{_B}/baselines-calibrated", "profile_mse", "alone"),
            Entry("profile and federated ridge", f"{_B}/baselines-calibrated", "mse", "pooled"),
            Entry("FedSTL, default model", f"{_B}/default", "mse"),
            Entry("default", f"{_B}/ridge", "mse", "default"),
        ),
    ),
    "ratings": RatingsHeadline(
        "ratings",
        "MovieLens 100K with ε = 10",
        "RMSE",
        higher=False,
        digits=4,
        entries=(
            Entry("BGTplanner, paper's model", f"{_ML}/paper/bgtplanner-gaussian-10", "rmse", "paper"),
            Entry("own mean", f"{_ML}/all/own-mean", "rmse", "alone"),
            Entry("default", f"{_ML}/once/privunit-10", "rmse", "default"),
            Entry("pooled biases, not private", f"{_ML}/all/biases", "rmse", "pooled"),
        ),
    ),
    "markets": MarketsHeadline(
        "markets",
        "XMarket",
        "MRR@20 in %",
        higher=True,
        digits=1,
        scale=100,
        entries=(
            Entry("popularity", f"{_X}/degree", "mrr20", clients=SMALL),
            Entry("local GNN", f"{_X}/local", "mrr20", clients=SMALL),
            Entry("PF-GNN+, paper's model", f"{_X}/pfgnn-plus", "mrr20", "paper", SMALL),
            Entry("own random walk", f"{_X}/walk", "mrr20", "alone", SMALL),
            Entry("walk on pooled counts", f"{_X}/pooled-walk", "mrr20", "pooled", SMALL),
            Entry("FedAvg, federated scorer", f"{_X}/default-alone", "mrr20", "", SMALL),
            Entry("default", f"{_X}/ridge", "mrr20", "default", SMALL),
        ),
    ),
}

FURTHER = {"rules": _rules("IFTTT A", "HR@20", "A/default", "hr20")}
"""Study -> second headline of it in README.md."""

WITH_HELPERS = {
    "rules": {"two helpers, ε = 8": f"{_RULES}/ridge-8"},
    "ratings": {"two helpers": f"{_ML}/once/helpers-10"},
}
"""Study -> name and row of runs with two helpers."""

WORDS: dict[Part, str] = {
    "alone": "clients alone",
    "pooled": "pooled data",
    "paper": "the paper's method",
    "": "no helpers",
}
"""Part -> its name in a sentence; a row with helpers is compared with the default without them."""


def _readme_rows() -> Iterator[tuple[Headline, tuple[Part, ...]]]:
    """Yield headline of each row of README.md, and the parts that its sentence compares it with."""
    for study, headline in HEADLINES.items():
        yield headline, ("alone", "pooled", "paper")
        if study in FURTHER:
            yield FURTHER[study], ("alone", "pooled", "paper")
        default = headline.of("default")
        if default is None:
            continue
        for name, key in WITH_HELPERS.get(study, {}).items():
            others = [entry for entry in headline.entries if entry.part not in ("", "default")]
            entries = (*others, replace(default, part=""), replace(default, key=key))
            yield replace(headline, data=f"{headline.data}, {name}", entries=entries), ("",)


def readme_table(results: dict[str, Results]) -> str:
    """Return the table of README.md."""
    lines = [
        "| task, data, measure | alone | pooled | paper's method | default here | in words |",
        "|---|---|---|---|---|---|",
    ]
    for headline, compared in _readme_rows():
        found = results[headline.task]
        cells = [headline.cell(found, part) for part in ("alone", "pooled", "paper", "default")]
        against = [(WORDS[part], entry) for part in compared if (entry := headline.of(part))]
        judged: dict[str, list[str]] = {}
        for words, entry in against:
            judged.setdefault(headline.judge(found, entry), []).append(words)
        sentence = "; ".join(f"{verdict} {', '.join(words)}" for verdict, words in judged.items())
        arrow = "↑" if headline.higher else "↓"
        lines.append(
            f"| {headline.task}, {headline.data}, {headline.measure} {arrow} | {' | '.join(cells)} | {sentence} |"
        )
    return "\n".join(lines)
