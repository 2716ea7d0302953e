"""Page of what federation is worth: simple lines, the paper's model and the closed form."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from studies.harness.headline import Entry
from studies.harness.results import Results
from studies.harness.row import About, Metrics, RowKey, mean_sd
from studies.harness.statistics import SEEDS
from studies.markets.experiments import OF_ONE, POOLED, SMALL
from studies.markets.retail import MARKETS as RETAIL_MARKETS

COLUMNS = ("alone", "simple line", "paper's model", "default", "helpers, ε = 8", "helpers, ε = 2")
"""From an owner's data alone, the strongest simple line of pooled data, and the ways of fedloom."""

_CLOSED = ("ridge", "ridge-8", "ridge-2")
_HELPED = ("ridge", "helpers-8", "helpers-2")


@dataclass(frozen=True)
class Line:
    """A data set, and the rows that stand for the columns.

    Args:
        study: Name of the study.
        data: Data set in words.
        measure: Metric in words, with an arrow to better values.
        part: Data set and protocol, as `set/protocol`.
        metric: Metric of the rows.
        rows: A row for each column, empty for none; `PROTOCOL/ROW` of another protocol, `ROW:METRIC` of another metric. Of
            `ROW|ROW` the best mean counts.
        digits: Digits behind the point.
        scale: Factor of every value.
        clients: Clients whose mean counts; empty for the row's own mean.
    """

    study: str
    data: str
    measure: str
    part: str
    metric: str
    rows: tuple[str, ...]
    digits: int = 1
    scale: float = 100.0
    clients: tuple[str, ...] = ()

    def cells(self, results: Results) -> list[str]:
        """Return mean and deviation over seeds for each column, with the number of seeds if they are few."""
        return [self._cell(results, found) for found in self.rows]

    def costs(self, results: Results) -> list[str]:
        """Return seconds and megabytes of the paper's model, the default and the first row with helpers."""
        found = [results.rows.get(self._key(row)) for row in self.rows[2:5]]
        abouts = [row.about if row else About() for row in found]
        return [cost for one in abouts for cost in (_mean(one.seconds), _mean(one.megabytes))]

    def _key(self, found: str) -> RowKey:
        set_, protocol = self.part.split("/")
        elsewhere, _, name = found.partition(":")[0].rpartition("/")
        return RowKey(set_, elsewhere or protocol, name)

    def is_behind(self, results: Results, column: int) -> bool:
        """Return True if the default's mean, as it is shown, is worse than a column's."""
        found = [self._best(results, self.rows[k]) for k in (COLUMNS.index("default"), column)]
        if not all(found):
            return False
        ours, theirs = (round(self.scale * fmean(values.values()), self.digits) for values in found)
        return ours > theirs if self.measure.endswith("↓") else ours < theirs

    def _best(self, results: Results, found: str) -> Mapping[int, float]:
        """Return seed -> value of the best of the rows; empty without any."""
        each = [values for one in found.split("|") if (values := self._values(results, one))]
        best = min if self.measure.endswith("↓") else max
        return best(each, key=lambda one: fmean(one.values())) if each else {}

    def _cell(self, results: Results, found: str) -> str:
        values = self._best(results, found)
        if not values:
            return "–"
        text = mean_sd(values.values(), self.digits, self.scale, shows_zero=False)
        return f"{text} ({len(values)} seeds)" if 1 < len(values) < SEEDS else text

    def _values(self, results: Results, found: str) -> Mapping[int, float]:
        """Return seed -> value of a row; empty without it."""
        key = self._key(found)
        if key not in results.rows:
            return {}
        return Entry(key.row, str(key), found.partition(":")[2] or self.metric, clients=self.clients).values(results)


_HOMES = ("own-relation", "counts-relation|counts-sides|counts-triple", "fedrule-adam", *_CLOSED)
_CLICKS = (
    "own-bigram|own-history|ridge:hr20_history|ridge:hr20_recency",
    "own-rules|session-rules|session-knn|session-items|bigram|popularity",
    "fedga",
    *_CLOSED,
)
_SENSORS = (
    "|".join(f"baselines-calibrated:{name}_mse" for name in ("profile", "ridge", "last_week")),
    "baselines-calibrated|baselines-calibrated:joint_mse",
    "fedstl-rounds",
    *_CLOSED,
)
_RATINGS = ("all/own-mean", "all/item-mean|all/biases", "paper/bgtplanner-gaussian-10", *_HELPED)

LINES = (
    Line(
        *("rules", "IFTTT, setup B", "HR@20 among valid rules, % ↑", "B/default", "filtered_hr20"),
        _HOMES,
    ),
    Line("rules", "IFTTT, setup A", "HR@20, % ↑", "A/default", "hr20", _HOMES),
    Line("sessions", "Gowalla", "HR@20, % ↑", "gowalla/default", "hr20", _CLICKS),
    Line("sessions", "Yoochoose 1/64", "HR@20, % ↑", "yoochoose64/default", "hr20", _CLICKS),
    Line("sessions", "Yoochoose, a week", "HR@20, % ↑", "yoochoose/default", "hr20", _CLICKS),
    Line("sessions", "Diginetica", "HR@20, % ↑", "diginetica/default", "hr20", _CLICKS),
    Line("traffic", "Boroondara", "MSE ↓", "boroondara/origin-0", "mse", _SENSORS, 4, 1.0),
    Line("traffic", "ten sites", "MSE ↓", "ten/origin-0", "mse", _SENSORS, 4, 1.0),
    Line("ratings", "MovieLens 100K", "RMSE ↓", "ml/once", "rmse", _RATINGS, 4, 1.0),
    Line("ratings", "FilmTrust", "RMSE ↓", "ft/once", "rmse", _RATINGS, 4, 1.0),
    Line(
        *("markets", "XMarket, five markets", "MRR@20, % ↑", "xmarket/pairs", "mrr20"),
        ("|".join(OF_ONE), "|".join(POOLED), "pfgnn-plus", *_CLOSED),
        clients=SMALL,
    ),
    Line(
        *("markets", "Online Retail, new items", "MRR@20, % ↑", "online-retail/cold", "mrr20"),
        ("text|walk|degree", "shared|pooled-walk", "pfgnn-plus", *_CLOSED),
        clients=RETAIL_MARKETS,
    ),
)


def worth_page(results: Mapping[str, Results]) -> str:
    """Return the content of `worth.md`."""
    quality = [[one.data, one.measure, *one.cells(results[one.study])] for one in LINES]
    costs = [[one.data, *one.costs(results[one.study])] for one in LINES]
    cost_titles = [f"{way}, {unit}" for way in ("paper's model", "default", "helpers") for unit in ("s", "MB")]
    return f"""# What federation is worth

One line for each data set, from the rows that the studies store; means over seeds, ± standard deviation.

{_table(["data", "measure", *COLUMNS], quality)}

- **alone**: the best simple predictor from an owner's own data. Of a home, the relations of its own rules by frequency; on
  setup B the list of valid rules is that of all homes. Popularity breaks ties of visits.
- **simple line**: the strongest count, regression or search for neighbours on pooled data, which no owner would hand over.
  On XMarket it is below *alone*, since counts of large markets drown those of small ones.
- **paper's model**: the paper's network, trained by the paper's method, without noise. That of ratings
  has Gaussian noise at ε = 10.
- **default**: what `fedloom up` trains, the closed form. Sums of two helpers without noise give the same answers.
- **helpers**: the same in one sum of two helpers with noise for whole clients. δ is the default's.

{_behind(results)}

A measure is that of the list that is shown. Rows without a number of seeds have five or more, or no randomness.
A dash is a row that is not measured.

## Cost

Wall time of one run on two shared cores, and megabytes sent and received by all clients. Rows of one study were measured on
several days, beside other work: times are rough.

{_table(["data", *cost_titles], costs)}

Made by `python -m studies worth`, not edited by hand. Settings and single seeds are on the pages of
[rules](rules.md), [sessions](sessions.md), [traffic](traffic.md), [ratings](ratings.md) and [markets](markets.md).
"""


def _behind(results: Mapping[str, Results]) -> str:
    """State where the default's mean is worse than a column before the paper's model."""
    found = [
        f"{one.data} ({name})"
        for one in LINES
        for column, name in enumerate(COLUMNS[: COLUMNS.index("paper's model")])
        if one.is_behind(results[one.study], column)
    ]
    return f"By means, the default is worse than a simple predictor on: {', '.join(found) or 'none'}."


def _table(titles: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [titles, ["---"] * len(titles), *rows])


def _mean(values: Metrics) -> str:
    return f"{fmean(values.values()):,.0f}" if values else "–"
