"""What methods with a server step size of their own say about it."""

from pydantic import Field

from common.methods.spec import MethodOptions


class ServerStep(MethodOptions):
    """ηₛ of a round."""

    server_lr: float = Field(1.0, gt=0)
    """ηₛ, server step size."""

    cooldown: float = Field(0.0, ge=0, le=1)
    """Share of the rounds, the last ones, over which ηₛ falls to zero in equal steps. Where there is little data for each
    parameter a constant step overfits, and wanders, at the end."""

    def eta(self, number: int, rounds: int) -> float:
        """ηₛ of round `number`, from 1, of so many."""
        cooling = self.cooldown * rounds
        return self.server_lr * min(1.0, (rounds - number + 1) / cooling) if cooling else self.server_lr
