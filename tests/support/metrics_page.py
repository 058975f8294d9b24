"""What an endpoint tells, read with Prometheus' own parser."""

from __future__ import annotations

import urllib.error
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

_TIMEOUT_S = 60.0
_ENDS = {
    "counter": ("_total", ""),
    "histogram": ("_bucket", "_count", "_sum"),
    "summary": ("_count", "_sum"),
}


def get(url: str) -> tuple[int, str]:
    """Status and body, whatever the status is."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class MetricsPage:
    def __init__(self, text: str) -> None:
        self.text = text
        # Of samples, and of all that could be there.
        self.names: set[str] = set()
        self.declared: set[str] = set()
        self._values: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for family in text_string_to_metric_families(text):
            self.declared |= {family.name + end for end in _ENDS.get(family.type, ("",))}
            for sample in family.samples:
                self.names.add(sample.name)
                self._values[sample.name, frozenset(sample.labels.items())] = sample.value

    @classmethod
    def at(cls, url: str) -> MetricsPage:
        status, text = get(url)
        assert status == 200, text
        return cls(text)

    def value(self, name: str, **labels: str) -> float:
        """The sum of all that have these labels, and maybe others."""
        wanted = labels.items()
        return sum(value for (known, its), value in self._values.items() if known == name and wanted <= set(its))

    def labels(self, name: str, label: str) -> set[str]:
        return {dict(its)[label] for known, its in self._values if known == name}
