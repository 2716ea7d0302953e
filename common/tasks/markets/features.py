"""Names of the features of a pair of items; importing them must not import torch."""

GRAPH_FEATURES = (
    "walk",
    "far_walk",
    "common",
    "rare_common",
    "overlap",
    "degree",
    "strength",
    "text",
    "elsewhere",
    "neighbor_text",
)
"""Features of candidate b for a query a with neighbors.

Count-weighted walk of two hops and of three; common neighbors, plain and weighted by 1/log degree (Adamic-Adar); cosine of
the neighbor sets; degree and strength of b; text similarity; users of the pair in other markets, if counts are shared; mean
text similarity of b with the neighbors of a.
"""

COLD_FEATURES = (
    "new_degree",
    "new_text",
    "new_elsewhere",
    "new_degree_elsewhere",
    "new_detour",
    "new_text_walk",
    "new_text_elsewhere",
)
"""Features of candidate b for a query a that is new in the market.

Degree of b; text similarity; from other markets: users of the pair, degree of b, and a walk of one hop there and one here. From
the ten items with texts nearest to that of a: a walk of one hop here, and their mean users with b in other markets.
"""

FEATURES = GRAPH_FEATURES + COLD_FEATURES
"""All F features; one of the two groups is zero for each query."""
