"""Text of the audit page; its numbers are filled in."""

INTRODUCTION = """# Audit of the privacy guarantees

{made_by}

An audit runs the code that releases and guesses from the replies. The guesses give a lower bound on the privacy loss of
that code, not of a formula. A bound above the claim would be a bug. The same audits with fewer runs are tests
(`tests/benchmarks/audit`), and a bound above the claim fails them.

{findings}"""

CLIENT = """## One client's updates

A client's local training is replaced by one of two planted updates of 16 numbers, on opposite sides, three times the clip
norm long. All else is the code of every client: reservation, clip, noise, ledger, replay cache. Every request is repeated,
as a hostile server would (in sums: sent once). The ledgers are in memory, so no owner's ledger is touched. In sums, the
server, the other client and all helpers but one collude; masks, boxes and the helpers' books are real.

One event is fixed before the runs. Gaussian noise: the reply, or the opened sum, lies on the first content's side. Laplace:
every reply lies beyond the first content. PrivUnitG: every reply lies in the cap around it. Shares are bounded by Clopper
and Pearson, wrong with probability 1e-4 a side. Gaussian noise is judged by μ = Φ⁻¹(1 − FPR) − Φ⁻¹(FNR) against √(2ρ) of
the cost that the ledger charged (Nasr et al. 2023), pure mechanisms by ln(TPR/FPR). The last two columns give both as ε at
δ = 1e-5, by the ledger's own conversion. A case has up to {many:,}
runs a side."""

FAULTS = """## Deliberate faults

The same audit of code that was broken on purpose, at ε = 2. A fault is detected if the bound exceeds what the ledger
charged."""

RECORD = """## Records under DP-SGD

{canaries:,} made-up sessions are each in or out of a silo's data by a fair coin. The silo trains the paper's sessions model
by DP-SGD, in steps over the sessions with probability q. The server sends the same model in every round and regresses the
sum of the updates on the sessions' gradients. It guesses the tenth with the largest coefficients as in, the tenth with the
smallest as out (Steinke, Nasr and Jagielski 2023, arXiv 2305.08846; bound at 95 %). One training gives one bound; there
are {seeds} of each."""

UPLOADS = """## Items read from real updates

{visitors} generated visitors train the paper's sessions model in the first round, one a client. The server ranks all items by
the norm of their rows in one update, or in a sum of updates. Precision is the share of a visitor's own n items among the
first n; popularity ranks items by the number of other visitors who have them. Means over visitors and {seeds} seeds."""

LIMITS = """## What an audit cannot show

- A lower bound is no proof. Bounds below the claim are consistent with a bug that these contents and events do not
  exercise.
- Guesses of one training are far from tight: even without any noise, {canaries:,} canaries of which {guesses} are guessed
  cannot bound ε above {most:.1f}.
- Enrolment, counts, assignments to clusters and metrics were not audited, nor were rules, traffic, ratings and markets
  under DP-SGD.
- Rounding of floating-point noise, timing, and generators of random numbers are outside. Noise has the operating system's
  entropy here, as at every client; the tests replace it by seeded noise.
- Real updates were attacked in one task, by one simple attack; better ones exist. Membership attacks with shadow clients,
  updates of later rounds, and sums with noise were not tried."""
