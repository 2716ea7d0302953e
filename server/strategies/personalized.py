"""Strategies of personalized methods: all take the mean of the shared layers."""

from common.methods import perfedavg, personalized
from server.strategies.fedavg import MeanStrategy
from server.strategies.spec import ServerMethod

FEDREP = ServerMethod(personalized.FEDREP, MeanStrategy)
DITTO = ServerMethod(personalized.DITTO, MeanStrategy)
LOCAL = ServerMethod(personalized.LOCAL, MeanStrategy)
PERFEDAVG = ServerMethod(perfedavg.METHOD, MeanStrategy)
