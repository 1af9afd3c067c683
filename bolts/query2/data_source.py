"""data_source: query 1's, with the settings of query 2."""

from __future__ import annotations

from bolts.query1.data_source import DataSource


class FareSource(DataSource):
    """state: as query 1's."""

    application = "query2"
