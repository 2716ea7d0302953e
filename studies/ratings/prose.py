"""Text of the ratings page; its numbers are filled in."""

from studies.ratings.experiments import AUTHORS_ROUNDS, LONG, REWARD_SHARE, ROUNDS, STOPPED, TUNING_SEEDS
from studies.ratings.paper_figures import BUDGET, DELTA, claimed_epsilon, mean_rows

INTRODUCTION = f"""# Ratings under local privacy: results on real films

{{made_by}}

Unless marked otherwise, the runs use the same ServerApp and ClientApp as `fedloom simulate`. **Every user is a client, and no
other party is trusted**: user-level local privacy, replace-one, one clip and one noise over all that a client sends; every
upload is scaled to the clip. Gaussian noise is accounted in zCDP (δ = {DELTA:g}), Laplace and PrivUnitG in pure ε; both are
filters that each client checks before it sends. Not covered: participation, release times, the float rounding of noise, and
the metrics themselves, which a simulation may read. Noise is drawn from seeds here, which makes the tables reproducible; the
noise of users is not seeded.
In rows of two helpers, clients send masked sums, and one of the helpers is trusted to add its noise and to keep its key.

A split is 4 : 1 at random, drawn anew for each seed from 0 on, as are noise and first models; all rows of a seed use the same
split. Errors are on the scale [0, 1]. ± is the standard deviation over splits. Splits differ, so **read the paired columns**:
"against own mean" is RMSE minus that of the baseline on the same splits, and the number of splits on which it is lower. F1
counts ratings and predictions from 0.5 on as positive: compare with "all positive". The *baselines* need no federation, and
no privacy where they say so. Generic constants of the default model (offset, slope and the effect of noise on them) were
chosen on splits {TUNING_SEEDS}, of which none is reported; choosing them is not charged to any budget. Those are other random
splits of the same ratings: most test ratings here were test ratings there too. Wall times are of a shared machine, on which
some runs paused for minutes: do not compare them."""

SIZES = """{clients:,.0f} users, {empty:.0f} of them without a rating, who send noise like all others; {items:,.0f} films, \
{ratings:,.0f} ratings, scaled as {scale}."""

ONCE = """### Default model, one round

Each client reports once which films it rated above its own mean; its own mean, its slope and its predictions stay on the
client. `fedloom simulate --task ratings --set privacy.unit=client` is the PrivUnitG row at ε = 10. Rows at ε = 10 and rows of
helpers have ten splits, the others five, unless the column states fewer. "Constants of the set" are those that the
exploration chose with access to test ratings of this set."""

PLANNED = f"""### Planners around the default model

{ROUNDS} rounds at ε = 10, all clients in each; mean of all reports, with equal weight for every round. Planners are rewarded by
the RMSE over {REWARD_SHARE:.0%} of the training ratings, which clients hold out and send in plaintext; the baseline "{{own}}"
does not see these ratings here. *Best* is the least RMSE of any round on the held-out ratings (some curves of runs that ended
early lack their last round); the other errors are of the last round on the test ratings. ADPML and ADAP are re-implemented
with parameters of our choice. T Laplace reports at ε/T each have √T times the noise of one at ε in their mean; T Gaussian
reports at ρ/T have the same noise as one."""

PAPER = f"""### The paper's model

Graph attention of width 8, {ROUNDS} rounds where the paper has {LONG}, all clients in each, one local step a round; FedAdam
at the authors' rate .05; first embeddings of standard deviation .3, and the paper's 1 where a row says so. All items are in
every update, so no ids are sent. Rewards and *best* as above."""

HELPED = f"""### The paper's model with two helpers

The same model, all {LONG} rounds of the paper and T₀ = 5. Two helpers add the noise to the sum of all updates. An update is
one step of SGD, scaled to the clip, and the model takes the mean, in place of FedAdam. On split 100, which no row reports,
held-out RMSE fell in each of 100 rounds under as much noise, from .303 to .218."""

PLANNING = f"""### Does planning pay?

BGTplanner with wide arms (½ to 8 even shares, skip and stop; its predictor sees costs alone) delivers the model of its best
round on held-out ratings. Regret is the sum of what the best fixed plan in hindsight gained more: the even split over
{ROUNDS} or {STOPPED} rounds, or one round of it. A reward is the fall of RMSE in a round, so the sum is the difference of two
RMSE on held-out ratings, below 1 for any planner and any number of rounds. That regret grows slower than the rounds is
therefore no finding on a planner."""

ACCOUNTING = f"""### True cost of the paper's own accounting

The authors clip and noise every item row and every tensor apart, and charge a round as if one had been sent. B = {BUDGET:g} is
a Rényi divergence of order 2, which for a single row is ε = {claimed_epsilon():.1f} at δ = {DELTA:g}, not {BUDGET:g}. A client
of n rows spends ρ = {BUDGET / 2:g}·(n + 4), under Laplace noise ε = {BUDGET:g}·(n + 4). Here a client names {{mean:.0f}} rated
films on average and {{most:.0f}} at most. With all ratings present from the first round, as in the specification,
**ε = {{present}}**. In the authors' own scheme below ratings arrive, and a row is noised only once it is present: of n rows
{mean_rows(1, AUTHORS_ROUNDS):.2%} on average over T = {AUTHORS_ROUNDS} rounds. There **ε = {{late}}** where B is spent evenly
("arriving" in the table). None of these covers the ids of the films.

*The authors' own accounting* is a re-implementation of their scheme (`studies/ratings/authors.py`), which the product's
clients refuse. Its *best* is over rounds on test ratings, as in their code for Table II, and "against uniform" compares with
their scheme spent evenly under the same noise on the same splits. *Uniform, honest accounting* is the product with the
paper's model at the ε of the mean client, all ratings present. It differs from the scheme in more than accounting: first
embeddings of standard deviation .3, FedAdam, all ratings present from the first round, but for the {REWARD_SHARE:.0%} held out
for planners, and {ROUNDS} rounds, against standard deviation 1, steps by the sign of the gradient, arriving ratings, and
{AUTHORS_ROUNDS} rounds."""
