"""Text of the page on privacy noise; its numbers are filled in."""

INTRODUCTION = """# Quality under privacy noise

{made_by}

The runs are those of `fedloom simulate` with the default model and method of each task, on its embedded generated data. Sets
are small, so that every cell could be run; larger federations lose less to noise on sums. Every person is a client unless
stated. A seed decides splits, first model and noise; at most {seeds} seeds, one where no ±
stands. δ is 1e-5, and the noise is seeded.

- **Own noise of each client:** everything that a client sends in the run is (ε, δ)-private for all of its data.
- **Noise of two helpers on sums:** the same for the sums that the server learns, if one helper follows the protocol.
- **Floor:** the baseline for which clients send nothing, on the same held-out data. In brackets: gain over the floor of the
  same run, positive is better. Every run with noise states both numbers beside its privacy statement.
- **Used:** in rules, sessions and traffic each client answers by its model or by the floor. It chooses on its validation
  data, and the number is measured on its test data. Validation data are a share of the training data: .3 of a home's,
  .2 of a visitor's and .1 of a sensor's."""

TASKS = {
    "rules": """{people}, 30 rounds of FedRule. Sums of counts of 125 to 8,000 homes, without training, are on the page of
[rules](rules.md).""",
    "sessions": """{people}, 15 rounds of FedGA, server rate 0.02. Under own noise its denominator is the mean magnitude of
noised updates: the model hardly moves from its start, at any ε. In sums the magnitude itself has noise.""",
    "traffic": "{people}, 5 rounds of FedSTL.",
    "ratings": """{people}, one report each; own noise is PrivUnitG, which has δ = 0. Two real sets are on the page of
[ratings](ratings.md).""",
    "markets": "{people}. Markets send counts of pairs and items with noise, and updates of the scorer without.",
}
"""Task -> first paragraph of its section."""

LIMITS = """## What was not run

- DP-SGD on records (`privacy.unit=record`): rules in silos, and the paper's sessions model.
- Real sets, except those of the pages of rules and ratings. One ε of a real run in place of a simulation.
- Further seeds than shown. Runs of rules and sessions without a used number are older, and had no validation data.
- Exported and served models: they answer by themselves, without this choice."""

OLD = """- Rows with noise under the accounts of today; those above, of {first} to {last}, were charged by zCDP, which left
  6 to 9 % of ε unused. Gaussian noise of the same ε is smaller today. `rows.json` has the time of each row."""
"""Item of this list for older rows."""
