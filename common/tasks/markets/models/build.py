"""Models of the markets task: the paper's networks, and the scorer of structural numbers that is the default."""

from torch import nn

from common.methods.pfgnn import PFGNN
from common.tasks.markets.models.baselines import SemiParametric, SiameseTower
from common.tasks.markets.models.pair_scorer import PairScorer
from common.tasks.markets.models.sgc import MarketNetwork, Pooling
from common.tasks.markets.options import MarketsOptions
from common.tasks.markets.vocabulary import MarketCatalogue


def build_market_model(
    goods: MarketCatalogue, options: MarketsOptions, *, paper: bool, pfgnn: PFGNN | None = None
) -> nn.Module:
    """The model that the options name.

    Args:
        goods: The catalogue; all networks but SPE know items by their features alone, so that any catalogue fits.
        options: The task's options.
        paper: Whether it is the paper's network.
        pfgnn: The method's options, where it is PF-GNN or PF-GNN+: its encoder is variational and may pool.
    """
    if not paper:
        return PairScorer()
    if options.network == "siamese":
        return SiameseTower(options.width, options.embedding)
    if options.network == "spe":
        return SemiParametric(options.width, options.embedding, len(goods.items))
    pooling = Pooling(pfgnn.clusters, pfgnn.exchange == "summary") if pfgnn and pfgnn.plus else None
    return MarketNetwork(options.width, options.embedding, variational=pfgnn is not None, pooling=pooling)
