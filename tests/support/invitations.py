"""Invitations of a toy federation, and their files."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common.config.parse import parse
from common.tasks.rules.vocabulary import demo_catalogue
from deploy.keys.certificates import make_authority
from deploy.keys.invitation import Invitation, make_invitation


def make_toy_invitation(folder: Path, server: str = "train.example.org:9092", **options: Any) -> Invitation:
    """Return an invitation by an authority in the folder, created if missing."""
    pem = folder / "ca.pem"
    if not pem.exists():
        make_authority(folder)
    config = parse({"task": "rules", "rounds": 3, **options})
    made = make_invitation(config, demo_catalogue(), server, pem.read_text(), contact="ops@example.org")
    return made.model_copy(update={"made": datetime(2026, 11, 23, 1, 2, 3, tzinfo=UTC)})


def write_changed(invitation: Invitation, path: Path, **changes: Any) -> Path:
    """Write the file of an invitation with other values, or terms; None removes a field."""
    values = json.loads(invitation.to_json())
    for key, value in changes.items():
        of = values["terms"] if key in values["terms"] else values
        of[key] = value
        if value is None:
            del of[key]
    path.write_text(json.dumps(values))
    return path
