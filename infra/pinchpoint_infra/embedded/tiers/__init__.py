"""Lists the tiers of the embedded farm. Each has a module."""

from collections.abc import Mapping

from pinchpoint_infra.embedded.tiers.contract import EmbeddedTier
from pinchpoint_infra.embedded.tiers.files import FilesTier
from pinchpoint_infra.embedded.tiers.nosql import NoSql
from pinchpoint_infra.embedded.tiers.search import Search
from pinchpoint_infra.embedded.tiers.sql import Sql
from pinchpoint_infra.embedded.tiers.web import WebTier

TIERS: Mapping[str, type[EmbeddedTier]] = {
    tier.name: tier for tier in (Sql, NoSql, Search, FilesTier, WebTier)
}
"""The tiers in the order in which they start."""
