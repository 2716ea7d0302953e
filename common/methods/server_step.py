"""Options of methods with a server step size."""

from pydantic import Field

from common.methods.spec import MethodOptions


class ServerStep(MethodOptions):
    """Options of the server step size ηₛ."""

    server_lr: float = Field(1.0, gt=0)
    """Server step size ηₛ."""

    cooldown: float = Field(0.0, ge=0, le=1)
    """Share of the rounds, at the end of the run, over which ηₛ decreases linearly to 0. With few data per
    parameter, a constant step overfits at the end."""

    def eta(self, number: int, rounds: int) -> float:
        """Return ηₛ of round `number`, from 1 to `rounds`."""
        cooling = self.cooldown * rounds
        return self.server_lr * min(1.0, (rounds - number + 1) / cooling) if cooling else self.server_lr
