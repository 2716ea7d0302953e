"""Unrated products by an exported network: its inputs and the list, without torch."""

import numpy as np

from client.inference.network import Network
from client.lists.items import UNSEEN
from client.tasks.ratings.data.raters import Rater
from client.tasks.ratings.inference import Suggestion, list_products, rated
from common.arrays import Arrays
from common.config.run import RunConfig
from common.tasks.ratings.task import TASK
from common.tasks.ratings.vocabulary import ProductCatalogue


def suggestions_by(
    network: Network, config: RunConfig, products: ProductCatalogue, statics: Arrays, rater: Rater, top: int
) -> list[Suggestion]:
    """Return the products that `suggestions` returns, by an exported network."""
    own = {"items": rater.items, "values": rated(rater, products).values}
    if config.model == "paper":
        del own["values"]  # its attention reads which products are rated
    shares = network(own).astype(np.float64)
    return list_products(shares, config.options_of(TASK), products, statics, rater, top, UNSEEN)
