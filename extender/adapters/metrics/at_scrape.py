"""What is read at each scrape, and gauges with a label."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class AtScrape(Collector):
    """Exports what a function yields at each scrape."""

    def __init__(self, collected: Callable[[], Iterator[Metric]]) -> None:
        self._collected = collected

    def describe(self) -> Iterator[Metric]:
        """Return nothing: what is exported is known at a scrape."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Return what there is now."""
        return self._collected()


def labelled(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    """Return a gauge with one value for each value of its label."""
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family
