"""Run by test_many_clients in a process of its own: several clients on a fresh SQLite database."""

from __future__ import annotations

import json

import django

django.setup()

from django.conf import settings
from django.core.management import call_command

settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def main() -> None:
    call_command("migrate", verbosity=0)
    from croc_annotate.annotation.checks import check_queue
    from croc_annotate.annotation.models import Judgement
    from tests.annotation.test_many_clients import run_clients
    from tests.annotation.world import make_open_campaign

    campaign = make_open_campaign(pairs=10, min_judgements=3)
    clients = run_clients(campaign, 8, disorder=0.1)
    campaign.refresh_from_db()
    sent = {str(key) for client in clients for key in client.sent}
    stored = {str(key) for key in Judgement.objects.values_list("client_key", flat=True)}
    report = {
        "judgements": len(stored),
        "lost": len(sent - stored),
        "surplus": Judgement.objects.filter(surplus=True).count(),
        "wrong": check_queue(campaign),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
