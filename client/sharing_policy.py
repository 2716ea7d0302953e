"""Part of a policy about counts, metrics and uploads to secure sums."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from common.errors import RefusedError
from common.options import Options
from common.privacy.options import PrivacyOptions, ResolvedTrust


class SharingPolicy(Options):
    """Counts, metrics and secure sums that the owner of the data allows."""

    allow_counts: Literal["never", "summed", "clear"] = "never"
    """Counts over this client's data, for a model's offset.

    They are `never` sent without noise, `summed` inside secure sums only, or sent in plaintext too: `clear`. `false` and
    `true` stand for `never` and `clear`.
    """

    share_metrics: Literal["without_noise", "summed", "always", "never"] = "without_noise"
    """Runs in which metrics of held-out data are sent to the server.

    In runs with helpers and without noise they are in secure sums. In other runs without noise, `without_noise` sends
    them in plaintext; `always` includes runs with noise and opts in to that: no claim of such a run covers them. `summed` sends
    none in plaintext; it and `always` add them to sums with noise.
    """

    trust: tuple[ResolvedTrust, ...] = ("local", "helpers")
    """Trust that this client accepts: `local`, noise drawn here; `helpers`, noise on secure sums."""

    min_sum: int = Field(5, ge=2)
    """Minimum number of clients in a secure sum with this client; 2 for generated data."""

    min_helpers: int = Field(2, ge=1, le=5)
    """Minimum number of this client's pinned helpers among those of a run."""

    helpers_on_first_use: bool = False
    """True to pin the helpers of a first run as the server names them."""

    serve_as_helper: bool = False
    """True to help other clients with their secure sums, too, by the node key of `fedloom join`.

    The helper is called NAME-helper after the client. It learns what other helpers learn.
    """

    helpers: dict[str, Annotated[str, Field(pattern="^SHA256:[A-Za-z0-9+/]{43}$")]] = Field(default_factory=dict)
    """Pinned helpers: name -> fingerprint of their node key, as `fedloom keys show` prints it."""

    @field_validator("allow_counts", mode="before")
    @classmethod
    def _read_flag(cls, value: Any) -> Any:
        return ("clear" if value else "never") if isinstance(value, bool) else value

    def check_trust(self, options: PrivacyOptions) -> None:
        """Refuse a run whose guarantee relies on a party that the owner does not accept.

        Raises:
            RefusedError: The policy does not allow the trust.
        """
        if options.resolved_trust not in self.trust:
            allowed = ", ".join(self.trust) or "none"
            raise RefusedError(f"the policy does not allow privacy.trust={options.resolved_trust} (trust = {allowed})")

    def check_counts(self, *, summed: bool) -> None:
        """Refuse to send counts without noise, in plaintext or inside a secure sum, unless the owner opted in.

        Raises:
            RefusedError: The policy does not allow it.
        """
        if self.allow_counts == "never" or (self.allow_counts == "summed" and not summed):
            way = "inside secure sums" if summed else "in plaintext"
            raise RefusedError(f"the policy does not allow sending counts {way} (allow-counts = {self.allow_counts})")

    def shares_metrics(self, options: PrivacyOptions) -> bool:
        """Return True if metrics are sent to the server in plaintext in a run with these options."""
        is_exact = options.unit == "none" and options.resolved_trust == "local"
        return self.share_metrics == "always" or (self.share_metrics == "without_noise" and is_exact)

    def sums_metrics(self, options: PrivacyOptions) -> bool:
        """Return True if metrics are added to secure sums in a run with these options."""
        if options.resolved_trust != "helpers" or self.share_metrics == "never":
            return False
        return options.unit == "none" or (options.metric_share > 0 and self.share_metrics != "without_noise")
