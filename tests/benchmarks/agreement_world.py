"""Measures the agreement room on a database of its own; prints one JSON line a result.

Run as a program with DATABASE_URL naming an empty PostgreSQL database:
``python -m tests.benchmarks.agreement_world ITEMS_PER_PAIR_SIDE_AND_GENERATOR``.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import threading
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "croc_annotate.settings")
os.environ.setdefault("SECRET_KEY", "only for a benchmark on this machine 0123456789")
os.environ.setdefault("ALLOWED_HOSTS", "testserver,localhost")
os.environ.setdefault("HTTPS", "0")
os.environ.setdefault("LOG_LEVEL", "ERROR")
# Without a broker tasks run in the page's process; pages then show what is there.
PAGES = {
    "overview": "/agreement/",
    "overview (live part)": "/agreement/?live=1",
    "agreement": "/agreement/report/",
    "annotators": "/agreement/annotators/",
    "person": "/agreement/annotators/{person}/",
    "rules": "/agreement/rules/",
    "review": "/review/",
    "images": "/agreement/images/?state=disputed",
    "images of a person": "/agreement/images/?annotator=bench017&verdict=accept",
    "images by hash": "/agreement/images/?hash=00ab",
    "set aside, its effect": "/agreement/annotators/{person}/set-aside/?act=set_aside&reason=x",
    "set aside, computed": "/agreement/annotators/{person}/set-aside/?act=set_aside&reason=x&now=1",
    "bulk review": "/review/bulk/?kind=disputed&category=counting",
    "images, deep": "/agreement/images/?after={deep}",
    "log": "/agreement/log/",
    "browse": "/images/",
    "prompts": "/prompts/",
    "pair": "/prompts/p/counting_7/",
    "API agreement": "/api/v1/campaigns/bench/agreement/",
    "API consensus": "/api/v1/campaigns/bench/consensus/?state=accepted",
}


def tell(name: str, seconds: float, **more: object) -> None:
    """One result as a line of JSON."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"name": name, "seconds": seconds, "mb": peak, **more}), flush=True)


def timed(name: str, call, **more):
    """Call, tell how long it took, return the value."""
    start = time.perf_counter()
    value = call()
    tell(name, time.perf_counter() - start, **more)
    return value


def measure_statistics(campaign) -> None:
    """Reading, coefficients with intervals, the model, and everything that pages show."""
    from croc_annotate.agreement import modelling, reading
    from croc_annotate.agreement.services import report_of
    from croc_annotate.agreement.statistics import REPORT_BY, compute_statistics

    data = timed("read", lambda: reading.campaign_data(campaign))
    n = int(data.table.item.size)
    timed("coefficients", lambda: report_of(data), n=n)
    timed("coefficients by part", lambda: report_of(data, by=REPORT_BY), n=n)
    gold = reading.gold_votes(campaign)
    timed("dawid-skene", lambda: modelling.fit_campaign(data, gold), n=n)
    timed("everything, first time", lambda: compute_statistics(campaign=campaign), n=n)
    timed("everything, again", lambda: compute_statistics(campaign=campaign), n=n)


def measure_pages(campaign) -> None:
    """Each page as a signed-in admin gets it: the median of seven."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    users = get_user_model()
    admin = users.objects.create_user("bench-admin", role="admin")
    person = campaign.judgements.values_list("annotator_id", flat=True).first()
    items = campaign.items.order_by("id").values_list("id", flat=True)
    deep = items[items.count() // 3]
    client = Client()
    client.force_login(admin)
    first_visit(client)
    for name, path in PAGES.items():
        url, took, cpu = path.format(person=person, deep=deep), [], []
        for _ in range(8):
            start, used = time.perf_counter(), time.process_time()
            reply = client.get(url)
            took.append(time.perf_counter() - start)
            cpu.append(time.process_time() - used)
            assert reply.status_code == 200, (url, reply.status_code)
        kb = len(reply.content) // 1024
        middle = statistics.median(took[1:])
        # What is computed on demand is fetched by its page, and is no page itself.
        title = name if "computed" in name else f"page {name}"
        tell(
            title,
            middle,
            worst=max(took[1:]),
            cpu=statistics.median(cpu[1:]),
            kb=kb,
        )


def first_visit(client) -> None:
    """What a visitor gets before anything is computed, and until the numbers are there."""
    from croc_annotate.agreement.models import StatisticsSnapshot

    StatisticsSnapshot.objects.all().delete()
    client.get("/accounts/profile/")  # what any first page of a process costs is not measured
    start = time.perf_counter()
    reply = client.get("/agreement/")
    tell("page overview, nothing computed yet", time.perf_counter() - start)
    assert reply.status_code == 202, reply.status_code
    for thread in threading.enumerate():
        if thread.name.startswith("statistics-"):
            thread.join()
    tell("the numbers are there after", time.perf_counter() - start)


def main() -> None:
    """Fill the database, measure, tell."""
    import django

    django.setup()
    from django.core.management import call_command

    from tests.benchmarks.agreement_data import make_campaign

    pairs, seeds, people, pages = (int(value) for value in sys.argv[1:5])
    call_command("migrate", verbosity=0)
    campaign = make_campaign(pairs=pairs, seeds=seeds, people=people)
    measure_statistics(campaign)
    if pages:
        measure_pages(campaign)


if __name__ == "__main__":
    main()
