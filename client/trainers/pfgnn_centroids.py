"""Where a market's cluster centres κ start: k-means++ on its own items, numbered like everybody else's."""

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import kmeans_plusplus
from torch import Tensor


def initialize_centroids(z: Tensor, start: Tensor, reference: Tensor, generator: torch.Generator) -> Tensor:
    """κ, c × k, from embeddings Z, n × k.

    A cluster's number must mean the same in every market, or the mean of summaries mixes unrelated ones: each centre takes
    the number of the reference's row that it is most alike (cosine), one to one.

    Args:
        z: Embeddings of the market's items.
        start: The server's κ, kept where there are fewer distinct items than clusters.
        reference: What the numbers mean: ξ where it is known, else the server's κ, c × k.
        generator: Source of the seed.
    """
    items = np.unique(z.numpy(), axis=0)
    seed = int(torch.randint(2**31 - 1, (), generator=generator))
    found, _ = kmeans_plusplus(items, min(len(start), len(items)), random_state=seed)
    rows, numbers = linear_sum_assignment(_unit(found) @ _unit(reference.numpy()).T, maximize=True)
    kappa = start.clone()
    kappa[torch.from_numpy(numbers)] = torch.from_numpy(found[rows]).to(start.dtype)
    return kappa


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths: np.ndarray = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: np.ndarray = rows / np.maximum(lengths, np.finfo(rows.dtype).tiny)
    return unit
