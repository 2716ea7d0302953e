"""Initial centroids κ of a market: k-means++ on its items, matched to a common numbering."""

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import kmeans_plusplus
from torch import Tensor


def initialize_centroids(z: Tensor, start: Tensor, reference: Tensor, generator: torch.Generator) -> Tensor:
    """Return the initial centroids κ, c × k.

    The mean of summaries is meaningful only if a cluster's number has the same meaning in every market. The centroids are
    therefore matched one to one to the rows of `reference`, by cosine similarity.

    Args:
        z: Embeddings Z of the market's items, n × k.
        start: Centroids of the server, c × k; they remain for clusters beyond the number of distinct items.
        reference: Summary ξ if there is one, else the server's centroids, c × k.
        generator: Generator of the seed of k-means++.
    """
    items = np.unique(z.numpy(), axis=0)
    seed = int(torch.randint(2**31 - 1, (), generator=generator))
    centroids, _ = kmeans_plusplus(items, min(len(start), len(items)), random_state=seed)
    rows, numbers = linear_sum_assignment(_unit(centroids) @ _unit(reference.numpy()).T, maximize=True)
    kappa = start.clone()
    kappa[torch.from_numpy(numbers)] = torch.from_numpy(centroids[rows]).to(start.dtype)
    return kappa


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths: np.ndarray = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: np.ndarray = rows / np.maximum(lengths, np.finfo(rows.dtype).tiny)
    return unit
