"""Metadata by which a client states its version of Flower in every call.

Equal to Flower's RuntimeVersionMetadata, whose module imports FastAPI and takes 13 MB of memory.
"""

from flwr.supercore.constant import (
    FLWR_COMPONENT_NAME_METADATA_KEY,
    FLWR_PACKAGE_NAME_METADATA_KEY,
    FLWR_PACKAGE_VERSION_METADATA_KEY,
)
from flwr.supercore.version import package_name, package_version

VERSION_METADATA = (
    (FLWR_PACKAGE_NAME_METADATA_KEY, package_name),
    (FLWR_PACKAGE_VERSION_METADATA_KEY, package_version),
    (FLWR_COMPONENT_NAME_METADATA_KEY, "SuperNode"),
)
