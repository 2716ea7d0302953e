"""What the results page says in words; every figure in it is filled in."""

from benchmarks.ratings.experiments import LONG, REWARD_SHARE, ROUNDS, TUNING_SEEDS
from benchmarks.ratings.published import BUDGET, DELTA, arriving, claimed_epsilon
from benchmarks.ratings.study import AUTHORS_ROUNDS

INTRODUCTION = f"""# Ratings under local privacy: what the methods do on real films

{{made_by}}

Every figure but those marked otherwise is measured by that script, which runs the ServerApp and ClientApp that users run
(`fedloom simulate`). **Every user is a client and trusts nobody**: user-level local privacy, replace-one, one clip and one
noise over all that a client sends; every upload is scaled to the clip. Gaussian noise is accounted in zCDP (δ = {DELTA:g}),
Laplace and PrivUnitG in pure ε; both are filters, checked by each client before it sends. Not covered: participation, release
times, the float rounding of noise, and the metrics themselves, which a simulation may read. Noise is drawn from seeds here, so
that tables can be made again; users' noise is not.

A split is 4 : 1 at random, drawn anew for each seed from 0 on, and so are noise and first models; all rows of a seed see the
same split. Errors are on the scale [0, 1]. ± is the standard deviation over splits. Splits differ, so **read the paired
columns**: "against own mean" is RMSE minus that of the line on the same splits, and the number of splits on which it is lower.
F1 counts ratings and predictions from 0.5 on as positive: compare with "all positive". The *lines* need no federation, or,
where it says so, no privacy. Generic constants of the default model (offset, slope and what noise does to them) were chosen
on splits {TUNING_SEEDS}, of which none is reported; choosing them is not charged to any budget. Those are other random splits
of the same ratings: most test ratings here were test ratings there too. Wall times are of a shared machine, on which some runs
stood still for minutes: they compare nothing."""

ONCE = """### What users get: the default model, one round

Each client reports once which films it rated above its own mean; its own mean, its slope and its predictions stay with it.
`fedloom simulate --task ratings --set privacy.unit=client` is the PrivUnitG row at ε = 10. Rows at ε = 10 have ten splits,
the others five, if the column says no less. "Constants of the set" are what the exploration had chosen with a look at test
ratings of this set."""

PLANNED = f"""### Planners around the default model

{ROUNDS} rounds at ε = 10, all clients in each; mean of all reports, every round of the same weight. Planners are rewarded by
the RMSE over {REWARD_SHARE:.0%} of the training ratings, which clients hold out and share in clear; the line "{{own}}" has
lost the same ratings here. *Best* is the least RMSE of any round on those held-out ratings (some curves of runs that ended
early lack their last round), the others are of the last round on the test ratings. ADPML and ADAP are re-implemented, their
parameters chosen by us. T Laplace reports at ε/T each have √T times the noise of one at ε in their mean; T Gaussian ones at
ρ/T have the same noise as one."""

PAPER = f"""### The paper's model

Graph attention of width 8, {ROUNDS} rounds where the paper has {LONG}, all clients in each, one local step a round; FedAdam
at the authors' rate .05; first embeddings of standard deviation .3, and the paper's 1 where a row says so.
All items are in every update, so no ids are sent. Rewards and *best* as above."""

ACCOUNTING = f"""### The paper's own accounting, and what it really costs

The authors clip and noise every item row and every tensor apart, and charge a round as if one had been sent; B = {BUDGET:g}
is a Rényi divergence of order 2, which for a single row is ε = {claimed_epsilon():.1f} at δ = {DELTA:g}, not {BUDGET:g}. A
client of n rows spends ρ = {BUDGET / 2:g}·(n + 4), under Laplace noise ε = {BUDGET:g}·(n + 4). Here a client names
{{mean:.0f}} rated films on average and {{most:.0f}} at most: with all ratings present from the first round, as in the spec,
**ε = {{present}}**. In the harness below ratings arrive, and a row is noised only once it is there: of n rows
{arriving(1, AUTHORS_ROUNDS):.2%} on average over T = {AUTHORS_ROUNDS} rounds, and so **ε = {{late}}** where B is spent evenly
("arriving" in the table). The ids of the films are not covered even so.

*The authors' own accounting* is that harness (`benchmarks/ratings/authors.py`) and not the product, whose clients refuse such
a run; *best* is over rounds on test ratings there, as their code does it for Table II, and "against uniform" compares with
their scheme spent evenly under the same noise on the same splits. *Uniform, honest accounting* is the product with the
paper's model at the ε of the mean client, all ratings present. It differs from the harness in more than accounting: first
embeddings of standard deviation .3, FedAdam, all ratings there from the first round, but for the {REWARD_SHARE:.0%} held out
for planners, and {ROUNDS} rounds, against standard deviation 1, steps by the sign of the gradient, ratings that arrive, and
{AUTHORS_ROUNDS} rounds."""
