"""Keep the rows of a release for the tests of later upgrades.

Run once, in the checkout of the release (CONTRIBUTING.md, "A release"):

    DATABASE_URL=sqlite:////tmp/fixture.sqlite3 python -m tests.upgrades.make_fixture OUT.tar.gz

The world has rows in every room: a campaign with judgements (one corrected, one set aside),
adjudications, people of each role, a study, a frozen release and one that was withdrawn, a metric run, the
audit log. It is written by the release's own ``backup``.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def build_world() -> None:
    """Rows in every room, through the release's own functions where they make them."""
    from django.core.management import call_command

    from croc_annotate.releases.services import freeze_release, withdraw_release
    from tests.agreement.rows import judged_campaign
    from tests.factories import make_user

    admin = make_user("admin", username="boss", display_name="Ünï “quoted” 漢字\n=1+1")
    judged = judged_campaign(
        ["aaa", "aru", "rrr", "ara"], slug="main", min_distance=0, created_by=admin
    )
    judged.correct(item=1, rater=1, verdict="accept")
    judged.adjudicate(item=1, verdict="accept", reviewer=make_user("reviewer"))
    add_people(judged)
    add_work(judged)
    freeze_release(name="first", campaign=judged.campaign, min_judgements=1, actor=admin)
    release = freeze_release(name="second", campaign=judged.campaign, min_judgements=1)
    withdraw_release(release=release, actor=admin, note="A test.")
    call_command(
        "run_benchmark", metric=["tests.benchmark.fakes:Counting"], release="first",
        option=["name=fake"],
    )  # fmt: skip
    add_results(judged)


def add_people(judged: Any) -> None:
    """A study, its participant, consent, an invitation's join, a token."""
    from croc_annotate.accounts.models import OidcIdentity, PlatformIdentity
    from croc_annotate.accounts.tokens import create_token
    from croc_annotate.annotation import models

    person, campaign = judged.raters[0], judged.campaign
    study = models.Study.objects.create(campaign=campaign, study_id="study1", code_completed="C1")
    PlatformIdentity.objects.create(user=person, external_id="participant-1")
    OidcIdentity.objects.create(user=person, issuer="https://id.example.org", subject="s-1")
    models.Participation.objects.create(
        campaign=campaign, annotator=person, study=study, answered=4, recent=[[1, 2, "x", 3.5]]
    )
    models.Submission.objects.create(
        study=study, annotator=person, session_id="s", outcome="completed", outcome_at=NOW,
        started_at=NOW,
    )  # fmt: skip
    text = models.ConsentText.objects.create(version="1", body="*Yes?*")
    models.Consent.objects.create(
        campaign=campaign, annotator=person, text=text, given=True, at=NOW
    )
    models.Qualification.objects.create(
        campaign=campaign, annotator=person, category="counting", asked=4, correct=3, passed=True,
        at=NOW,
    )  # fmt: skip
    create_token(user=person, name="script", scopes=["read"])
    guideline = models.Guideline.objects.create(version="1", body="Judge **strictly**.")
    models.Campaign.objects.filter(pk=campaign.pk).update(guideline=guideline, consent_text=text)
    models.Invitation.objects.create(
        campaign=campaign, sha256="0" * 64, created_by=campaign.created_by, max_uses=3, uses=1
    )


def add_work(judged: Any) -> None:
    """Leases, a flag, a judgement that was set aside."""
    from croc_annotate.annotation import models

    for item in judged.items:
        for judgement in models.Judgement.objects.filter(item=item, supersedes=None):
            models.Assignment.objects.create(
                item=item, annotator=judgement.annotator, campaign=judged.campaign,
                state="answered", created_at=NOW, expires_at=NOW, ended_at=NOW,
            )  # fmt: skip
    models.Flag.objects.create(
        item=judged.items[0], annotator=judged.raters[1], kind="unclear_text", remark="Was?",
        client_key=uuid.uuid4(), created_at=NOW,
    )  # fmt: skip
    last = models.Judgement.objects.order_by("pk").last()
    models.Judgement.objects.filter(pk=last.pk).update(set_aside_at=NOW)


def add_results(judged: Any) -> None:
    """Statistics, a review policy, an export, a number from elsewhere, a generation worker."""
    from django.db.models import Min

    from croc_annotate.agreement.models import ItemConsensus, ReviewPolicy, StatisticsSnapshot
    from croc_annotate.benchmark.models import ExternalResult
    from croc_annotate.candidates.models import LeftFile, Worker
    from croc_annotate.releases.models import Release, ReleaseExport, ReleaseFreeze

    campaign = judged.campaign
    ReviewPolicy.objects.create(campaign=campaign, second_reviewer=True, low_posterior=0.85)
    StatisticsSnapshot.objects.create(
        campaign=campaign, kind="overview", parameters={"rule": "majority"},
        data={"alpha": 0.61, "none": None}, as_of=NOW,
    )  # fmt: skip
    item = judged.items[0]
    ItemConsensus.objects.update_or_create(
        item=item,
        defaults={
            "campaign": campaign, "candidate": item.candidate, "text_role": "own",
            "state": "accepted", "n_accept": 3, "posterior": 0.987654321,
        },
    )  # fmt: skip
    oldest = Release.objects.aggregate(pk=Min("pk"))["pk"]
    ReleaseExport.objects.create(
        release_id=oldest, digest="1" * 64, state="done", file="exports/x.zip", created_at=NOW
    )
    ExternalResult.objects.create(
        board="croc", metric="Paper", configuration="as printed", measure="mean", value=66.7,
        unit="%", source="https://arxiv.org/abs/2505.11314",
    )  # fmt: skip
    LeftFile.objects.create(name="originals/00/left.png", since=NOW)
    ReleaseFreeze.objects.create(
        name="third", version="1.0.0", campaign=campaign, options={"rule": "majority", "b": 1},
        state="failed", error="too few", created_at=NOW,
    )  # fmt: skip
    Worker.objects.create(name="gpu-1", started_at=NOW, heartbeat_at=NOW, images_done=2**40)


def main() -> None:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    build_world()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "backup.tar"
        call_command("backup", str(path))
        with path.open("rb") as plain, gzip.open(sys.argv[1], "wb") as packed:
            shutil.copyfileobj(plain, packed)


if __name__ == "__main__":
    main()
