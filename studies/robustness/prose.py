"""Text of the robustness page; its numbers are filled in."""

INTRODUCTION = """# Robustness

{made_by} {runs} runs took {minutes:.0f} minutes.

The server and the clients are those of `fedloom simulate`. {clients} clients hold 60 homes (rules, FedRule, {rules} rounds) or
visitors (sessions, FedGA, {sessions} rounds, server rate 0.02). Attackers are drawn by seed, {seeds} seeds a case. They send
false replies through the usual messages. Quality is HR@20 of the final model on 400 homes or visitors that no client holds.
`trimmed-mean` and `multi-krum` assume {assumed} attackers.

- **Scaled update:** 100 times the honest one.
- **Reversed below the bound:** −5 times the honest one, so that most are within the norm bound of 10.
- **Sign flip:** the honest update, in FedRule also the gradient, with the other sign.
- **Label flip:** false training data. Relation r of R becomes R − 1 − r; every second click i on V items becomes V − 1 − i.
- **ALIE** ("A Little Is Enough", Baruch et al. 2019, arXiv 1902.06156): all attackers send the mean of their honest updates
  less 1.5 standard deviations of each coordinate.
- **False metrics:** an honest update, but the best possible metrics with a weight of 1,000 records."""

QUALITY = """## Quality

HR@20 in %, mean ± standard deviation over seeds. `none` is the mean of the updates; `no-bound` is it without the norm bound."""

NAMES = """## Attackers and honest clients in a round line

Attackers that a round line names as left out, of all, under the five rules. A rule itself names nobody: it aggregates without
saying whom it trusts less."""

PARTS = """## Sign flip in FedRule

HR@20 in % on rules with 10 % attackers. Clients of FedRule also send a gradient. A false one shifts the correction that every
client adds to its later steps, and harms more than a false update."""

COST = """## Cost

Processor milliseconds of the server for the checks, the aggregate and the step of a round with 20 replies; median over all
runs."""

DISAPPOINTS = """## Findings

{findings}

Clients hold three homes or visitors each. Their updates differ as much among themselves as from false ones, which is the hard
case for all four rules; their proofs assume clients with equal data. Larger models and real data were not tried. Attackers who
know the norm bound choose a length just below it."""
