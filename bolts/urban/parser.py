"""parser: splits a report into the values of its kinds; impossible ones are dropped, and counted by reason."""

from __future__ import annotations

from typing import Any

from bolts.urban.reports import Drop, read_report
from leeward.runtime import ElasticBolt


class ReportParser(ElasticBolt):
    """Stateless. It is keyed by sensor, so that a sensor's reports stay in order."""

    outputs = ("sensor", "kind", "t", "value")

    def process(self, tup: Any) -> None:
        _, line = tup.values
        report = read_report(line)
        if isinstance(report, Drop):
            self.counters[str(report)] += 1
            return
        for reason in report.dropped:
            self.counters[str(reason)] += 1
        for kind, value in report.values.items():
            self.emit([report.sensor, kind, report.t, value])
