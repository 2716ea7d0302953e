"""Text of the sessions page; its numbers are filled in."""

INTRODUCTION = """# Session recommendation: results on real clicks

{made_by}

One client per user or per group of sessions; SR-GNN with d = 48; one full-batch SGD step per client and round (rate 1,
gradient norm at most 5) unless a row's point says otherwise; clients weighted by their examples; one seeded cohort a round.
Points are chosen per method by HR@20 on validation cases of a seed that is not reported, after all rounds. Each reported
seed draws split, cohorts and weights anew. All metrics rank all items. `saturated`, `ramp` and `quadratic` are readings of
FedGA's second moment, whose equation is not public: no row is "FedGA as published". MB count both directions, and the
evaluations by all clients every tenth or twentieth round. *Baselines* need no network, and some need no federation; they
show the least that a method must reach. Wall times are of a shared machine, on which some runs paused for minutes: do not
compare them."""

SETUP = """{setting.about} {clients:,.0f} clients, {sessions:,.0f} sessions, {items:,.0f} items, mean pairwise Jaccard \
distance of clients' item sets {jaccard:.3f}; {setting.clients_a_round} clients a round, {setting.rounds} rounds{cooldown}."""

CURVES = """## HR@20 by round

Mean and range over seeds, at the point of each method. The dashed line is the central network. In each set all methods send as
much up in a round, so the figure is also one by megabytes."""

SAMPLED = """Softmax over a client's own items and 256 drawn ones in place of all items (`tasks.sessions.loss=sampled`),
compared by seed; rankings are over all items. Both are tuned over the same grid, for the rounds that they train. At equal bytes
the full softmax trains for as many rounds as send what clients with the sampled one send to its end. Each set's table of tuning
has the validation metrics of all points."""

COST = """Generated clicks by Zipf's law; clients have 60 sessions each, and 20 with 40,000 items. Processor time is from one
round to the next without evaluation; the peak includes the evaluation of all clients (`python -m studies speed
sampled_softmax`)."""

CHECK = """SR-GNN trained centrally on a whole set as its authors preprocess it: width 100, Adam at .001 (a tenth after three
epochs), L2 1e-5, batches of 100, seed 0. No epoch is chosen by the test cases. Test cases whose target is in no training
session cannot be ranked; counting them as misses lowers HR@20 by their share."""
