"""The numbers that an operator watches, in Prometheus' text format.

They are read from the database at each scrape, so that every web process tells the same.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Count, F, Max, Min, Sum
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from croc_annotate import __version__
from croc_annotate.annotation.models import Assignment, Campaign, Item, Judgement
from croc_annotate.candidates.models import Candidate, Worker
from croc_annotate.operations.failures import task_failures, tasks_waiting
from croc_annotate.operations.traffic import counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from prometheus_client.core import Metric

WINDOW = timedelta(minutes=5)


class DatabaseCollector(Collector):
    """Queue, answers, images and workers at time ``at``."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def collect(self) -> Iterator[Metric]:
        """Yield all families."""
        yield GaugeMetricFamily("croc_info", f"Version {__version__}", value=1)
        yield from self._queue()
        yield from self._answers()
        yield from self._images()
        yield from self._tasks()

    def _queue(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "croc_queue_places", "Judgements that can still be handed out", labels=["campaign"]
        )
        free = dict(
            Item.objects.waiting()
            .values_list("campaign")
            .annotate(free=Sum(F("needed") - F("leased")))
            .order_by()
        )
        # An open campaign with nothing left says 0: a number that is not there alarms nobody.
        for pk, slug in Campaign.objects.open().values_list("pk", "slug"):
            family.add_metric([slug], free.get(pk, 0))
        yield family
        live = Assignment.objects.live(self.at).aggregate(n=Count("pk"), oldest=Min("created_at"))
        yield GaugeMetricFamily("croc_leases", "Live leases", value=live["n"])
        age = (self.at - live["oldest"]).total_seconds() if live["oldest"] else 0.0
        yield GaugeMetricFamily(
            "croc_lease_oldest_seconds", "Age of the oldest live lease", value=age
        )

    def _answers(self) -> Iterator[Metric]:
        newest = Judgement.objects.aggregate(id=Max("pk"))["id"] or 0
        yield CounterMetricFamily("croc_judgements", "Judgements ever stored", value=newest)
        recent = Judgement.objects.filter(created_at__gte=self.at - WINDOW).count()
        yield GaugeMetricFamily(
            "croc_judgements_per_second",
            "Judgements a second over the last five minutes",
            value=recent / WINDOW.total_seconds(),
        )

    def _images(self) -> Iterator[Metric]:
        family = GaugeMetricFamily("croc_candidates", "Candidates by state", labels=["state"])
        for state, count in Candidate.objects.values_list("state").annotate(n=Count("pk")):
            family.add_metric([state], count)
        yield family
        recent = Candidate.objects.rendered().filter(rendered_at__gte=self.at - WINDOW).count()
        yield GaugeMetricFamily(
            "croc_images_per_second",
            "Images rendered a second over the last five minutes",
            value=recent / WINDOW.total_seconds(),
        )
        alive = Worker.objects.filter(
            heartbeat_at__gte=self.at - timedelta(minutes=2), stopped_at__isnull=True
        ).count()
        yield GaugeMetricFamily("croc_workers", "Workers that report", value=alive)

    def _tasks(self) -> Iterator[Metric]:
        failed = CounterMetricFamily(
            "croc_task_failures", "Background tasks that ended in an error", labels=["task"]
        )
        for task, count in sorted(task_failures().items()):
            failed.add_metric([task], count)
        yield failed
        waiting = GaugeMetricFamily(
            "croc_tasks_waiting", "Background tasks that no worker has taken", labels=["queue"]
        )
        for queue, count in tasks_waiting().items():
            waiting.add_metric([queue], count)
        yield waiting


def exposition() -> bytes:
    """All metrics as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(DatabaseCollector(timezone.now()))
    return generate_latest(registry) + generate_latest(counted())
