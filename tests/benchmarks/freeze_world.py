"""Run as a program on the empty PostgreSQL of DATABASE_URL: one freeze, told as a JSON line."""

from __future__ import annotations

import json
import os
import resource
import sys
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "croc_annotate.settings")
os.environ.setdefault("SECRET_KEY", "only for a benchmark on this machine 0123456789")
os.environ.setdefault("LOG_LEVEL", "ERROR")


def main() -> None:
    """400 pairs with four candidates a seed, three judgements each; the posterior rule."""
    import django

    django.setup()
    from django.core.management import call_command

    from croc_annotate.releases.services import freeze_release
    from tests.benchmarks.agreement_data import make_campaign

    call_command("migrate", verbosity=0)
    campaign = make_campaign(pairs=400, seeds=int(sys.argv[1]))
    start, cpu = time.perf_counter(), time.process_time()
    release = freeze_release(name="bench", campaign=campaign, rule="posterior")
    told = {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "candidates": sum(release.counts.values()),
        "judgements": release.manifest["annotations"],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
