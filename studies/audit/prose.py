"""Text of the audit page; its numbers are filled in."""

INTRODUCTION = """# Audit of the privacy guarantees

{made_by}

An audit runs the code that releases and guesses from the replies. The guesses give a lower bound on the privacy loss of that
code, not of a formula. A bound above the claim would be a bug. Tests (`studies/tests/audit`) run the same audits with fewer
runs and fail in that case.

{findings}"""

CLIENT = """## One client's updates

A client's local training is replaced by one of two planted updates of 16 numbers. They lie on opposite sides, three times the
clip norm long. All else is the code of every client: reservation, clip, noise, ledger, replay cache. Every request is repeated,
as a hostile server would; in sums it is sent once. The ledgers are in memory, so no owner's ledger is touched. In sums, the
server, the other client and all helpers but one collude. Masks, boxes and the helpers' books are real.

One event is fixed before the runs. Gaussian noise: the reply, or the opened sum, lies on the first content's side. Laplace:
every reply lies beyond the first content. PrivUnitG: every reply lies in the cap around it. Shares are bounded by Clopper and
Pearson, wrong with probability 1e-4 a side. Gaussian noise is judged by μ = Φ⁻¹(1 − FPR) − Φ⁻¹(FNR), against √(2ρ) of the
ledger's charge (Nasr et al. 2023). Pure mechanisms are judged by ln(TPR/FPR). The last two columns give both as ε at δ = 1e-5,
by the ledger's own conversion. A case has up to {many:,} runs a side, that is {both:,} releases."""

FAULTS = """## Deliberate faults

The same audit of code that was broken on purpose, at ε = 2. A fault is detected if the bound exceeds the charge."""

RECORD = """## Records under DP-SGD

{canaries:,} made-up sessions are each in or out of a silo's data by a fair coin. The silo trains the paper's sessions model by
DP-SGD. A session joins a step with probability q. The server sends the same model in every round. It regresses the sum of the
updates on the sessions' gradients. The tenth with the largest coefficients is guessed as in, the tenth with the smallest as
out. The bound is that of Steinke, Nasr and Jagielski (2023, arXiv 2305.08846), at 95 %. One training gives one bound; there are
{seeds} of each."""

OLD = """ Measured on {days}, with the noise of the accounting of then, by Rényi orders. Plans charged by PRV have less
noise at the same ε."""
"""End of this paragraph for older rows."""

UPLOADS = """## Names read from real updates

{clients} clients hold one generated visitor (sessions) or home (rules) each and train in the first round, with one local step
unless stated. The models are the papers' unless stated. From one update, or a sum of updates, the server ranks all items by the
norm of their rows, and all relations by the change of their bias. Precision is the share of a client's own n names among the
first n. Popularity ranks names by the number of other clients who have them. Means over clients and {seeds} seeds."""

MEMBERS = """## Membership of one session

For each of {clients} visitors a fair coin leaves the last session in the data or out. The attacker has that session, the model
and {shadows} other visitors. It compares the update with that of the session alone, by their inner product. Half of the other
visitors train with the session, half without. They fit the likelihood ratio by which the attacker guesses (Carlini et al. 2022,
arXiv 2112.03570). One step of the paper's model in the first round. Means over up to {seeds} seeds."""

OPENED = """## Rules read from opened sums

{clients} generated homes are each in or out of a sum of method `ridge` by a fair coin. Homes without training rules are left
out. The attacker sees the opened sum and has as many further homes.

To guess if a home is in, it has all triples of the home. An exact sum of pairs excludes a home with a pair that is not in it,
and points to a home with a pair that no other has. From a noised sum, the score is the inner product with the home's triples,
less what the further homes give.

To read triples, it has half of those of a home in the sum. Beside the rarest of them, the exact sum shows the others.
Popularity ranks triples by the number of other homes that have them. Means over {seeds} seeds."""

LIMITS = """## What an audit cannot show

- A lower bound is no proof. Contents and events other than these could still reveal a bug.
- Guesses of one training are far from tight. Without any noise, {canaries:,} canaries of which {guesses} are guessed cannot
  bound ε above {most:.1f}.
- Enrolment, counts, assignments to clusters and metrics were not audited. DP-SGD was audited in one task.
- Rounding of floating-point noise, timing, and generators of random numbers are outside. Noise has the operating system's
  entropy here, as at every client; the tests replace it by seeded noise.
- Real updates were attacked in two tasks, by one simple attack each; better ones exist. A plain update lists the items of every
  session, so a check of items would beat the likelihood ratio. Updates of later rounds and sums with noise were not tried."""
