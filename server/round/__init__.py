"""One round: requests, checks of replies, server step, evaluation, plan."""
