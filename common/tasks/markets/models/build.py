"""Model builder of the markets task: the paper's networks and the default pair scorer."""

from torch import nn

from common.methods.pfgnn import PFGNN
from common.tasks.markets.models.baselines import SemiParametric, SiameseTower
from common.tasks.markets.models.pair_scorer import PairScorer
from common.tasks.markets.models.sgc import MarketNetwork, Pooling
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.vocabulary import MarketCatalogue


def build_market_model(
    catalogue: MarketCatalogue, options: MarketsOptions, *, paper: bool, pfgnn: PFGNN | None = None
) -> nn.Module:
    """Build the model of the options.

    Args:
        catalogue: Vocabulary of the run; only the shape of SPE depends on it.
        options: Options of the task.
        paper: True for the paper's network.
        pfgnn: Options of PF-GNN or PF-GNN+, whose encoder is variational and may pool; None for other methods.
    """
    if not paper:
        return PairScorer()
    if options.network == "siamese":
        return SiameseTower(options.width, options.embedding)
    if options.network == "spe":
        return SemiParametric(options.width, options.embedding, len(catalogue.items))
    pooling = Pooling(pfgnn.clusters, pfgnn.exchange == "summary") if pfgnn and pfgnn.plus else None
    return MarketNetwork(options.width, options.embedding, variational=pfgnn is not None, pooling=pooling)
