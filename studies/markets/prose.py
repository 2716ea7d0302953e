"""Text of the markets page; its numbers are filled in."""

INTRODUCTION = """# Markets: related products in seven XMarket markets and eleven of Online Retail

{made_by}

XMarket Electronics, seven markets (US is not in the copy), ratings only, no texts. Items are hashed ids to the networks, and
the networks' rows say nothing about the use of shared *text* features. A pair is two items that at least two users of a market
rated. MRR@20 / NDCG@20 × 100, every item of the market ranked, the query and its training neighbours left out, ties counted as
if broken at random; mean over {seeds} seeds of the split, five for baselines and rows that a claim of the papers names, ± their
standard deviation. Between seeds `in` and `jp`, with some 20 to 200 queries, move by ±3 to ±5 points: smaller differences there
are within the spread. *mean*: of the five small markets.

SLIM and EASE take the graph's rows for users, since pairs have none. *Pooled counts* add those of the other markets to a
market's own, which no market would hand over; as they are, those of large markets drown a small one's. FeatMLP, Siamese and
SPE use triples and no graph; the other networks are SGC of three hops on edges weighted by their users. All: 128 numbers per
item, Adam, 200 local steps of 1,024 triples, a rate chosen by held-out pairs of seed 0 from {grid}: {rates}. PF-GNN and
PF-GNN+ average plainly (β = 1, by the same pairs); the weight of ξ, λ_s = .01, is divided by n² where ξ is a sum, and is .001
for means. Per-FedAvg's α and pFedMe's λ are by held-out pairs of the smallest markets."""

SEEN = "Of these, only the queries that are in the others' sums:"

RETAIL = """## Online Retail: eleven markets whose items have texts

Invoices of a gift shop by country (UCI, CC0; Chen et al. 2012), with the item's name as its text. A market is a country, a user
an invoice; of the United Kingdom 3,000 invoices. Invoices of more than 60 items make no pairs. A pair is two items of at least
two invoices. Texts are hashed to 768 numbers. MRR@20 / NDCG@20 in %, mean over seeds of the split ± their standard deviation;
*mean*: of the eleven markets, which have 10 to 250 queries each when items are cold. Small ones move by 10 points a seed.

The networks are those above, with one of two rates (.08, .32) by held-out training pairs of a further seed; PF-GNN+ takes that
of PF-GNN. β = 1, λ_w = 1, λ_s = .01 for sums and .001 for means. Rows of 200 local steps have the paper's local effort, about
20 epochs, at rate .08. Differences are
paired by seed, with the share of seeds in which the first row is better."""

GRID = """### λ_w and λ_s

Rate .08, one run a point, on held-out training pairs of one seed; the mean is over queries, two thirds of them in the United
Kingdom."""

WEIGHTS = """## Weights λ_w and λ_s of the local terms: random pairs

The first two rows have λ_w = 1 and λ_s = .01. Each row has its own rate of the same grid."""

SUMS = """The paper's loss is a sum over pairs, ours a mean: rows *of a sum* have λ_w divided by {pairs:,}, the mean number
of pairs of a market. They train by SGD in at most {rounds} rounds of one step. Rate ({rates}) and rounds are those that PF-GNN
has at this λ_w by held-out pairs of seed 0. λ_w, rate and rounds: {chosen}. The pull bounds a market's change of φ in a round:
near its gradient over 2 λ_w, whatever the rate."""

NOT_RUN = """## Not run

BERT features, the other eleven markets of XMarket and Home & Kitchen, whose data are not here; a market of Online Retail that
joins later; the networks on `join --adapt`."""
