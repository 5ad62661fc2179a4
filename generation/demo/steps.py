"""The demo's steps in order. Each does what is missing and says what it did."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from django.core.management import call_command
from django.utils import timezone

from croc_annotate.accounts.models import User
from croc_annotate.agreement.models import Adjudication, ItemConsensus
from croc_annotate.agreement.statistics import compute_statistics, newest
from croc_annotate.annotation.models import Campaign
from croc_annotate.benchmark.models import MetricRun, RunState
from croc_annotate.candidates.models import Candidate
from croc_annotate.prompts.bank import parse_bank
from croc_annotate.prompts.models import ContrastPair
from croc_annotate.prompts.services import load_pairs
from croc_annotate.releases.models import Release
from croc_annotate.releases.services import freeze_release
from generation import scenes
from generation.demo import campaign as plan
from generation.demo.judging import given_judgements, judge, settle_disputes
from generation.demo.people import Login, make_cast, make_logins, make_reviewer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEMO_BANK = Path(scenes.__file__).parent / "demo_bank.jsonl"
RELEASE = "demo"
FORMATS = ("crochum", "parquet")
METRICS = ("random", "human", "onnx-dual-encoder")
WEEKS = 3
SETTLED = 0.4


class NotADemoError(Exception):
    """The database holds other work: the demo would add well-known accounts and drawn data to it."""


@dataclass
class Demo:
    """A demo in the making: where its files go, and what its steps leave for later ones."""

    folder: Path
    seeds: str = plan.SEEDS
    logins: list[Login] = field(default_factory=list)

    @property
    def export(self) -> Path:
        """Where the release is exported to."""
        return self.folder / "export"


def check_database_is_ours() -> None:
    """Raise NotADemoError if anything but a demo is in the database."""
    others = Campaign.objects.exclude(slug=plan.CAMPAIGN).exists()
    pairs = ContrastPair.objects.exclude(bank=plan.BANK).exists()
    people = User.objects.exclude(username__startswith="demo-").exclude(is_simulated=True).exists()
    if others or pairs or people:
        raise NotADemoError(
            "This database holds other work, and the demo makes accounts and drawn data. Use "
            "`make demo`, or set DATABASE_URL and MEDIA_ROOT to a place of their own."
        )


def accounts(demo: Demo) -> str:
    """Accounts for the visitor and for the simulated annotators."""
    demo.logins = make_logins(demo.folder / "logins.json")
    return f"{len(demo.logins)} accounts to sign in with, {len(make_cast())} simulated annotators"


def prompts(demo: Demo) -> str:
    """The demo bank."""
    del demo
    report = load_pairs(rows=parse_bank(DEMO_BANK), bank=plan.BANK)
    return f"{report.total} contrast pairs in 8 categories"


def images(demo: Demo) -> str:
    """Drawings by two hands, and some with known answers."""
    plan.make_generators()
    run = {"here": True, "stdout": io.StringIO()}
    call_command(
        "generate", generator=list(plan.GENERATORS), seeds=demo.seeds, bank=plan.BANK, **run
    )
    call_command(
        "generate",
        generator=[plan.KNOWN],
        seeds=plan.KNOWN_SEEDS,
        pair=list(plan.KNOWN_PAIRS),
        **run,
    )
    rendered = Candidate.objects.rendered().count()
    return f"{rendered} images drawn by a program (no model, no GPU)"


def campaign(demo: Demo) -> str:
    """The campaign with its items, gold and practice."""
    del demo
    admin = User.objects.get(username="demo-admin")
    made = plan.make_campaign(actor=admin, since=timezone.now() - timedelta(weeks=WEEKS))
    return f"campaign “{made.title}” with {made.items.count()} items"


def judgements(demo: Demo) -> str:
    """What the simulated annotators say, over three weeks that end yesterday."""
    del demo
    made = Campaign.objects.get(slug=plan.CAMPAIGN)
    until = timezone.now() - timedelta(days=1)
    since = min(made.created_at, until) - timedelta(weeks=WEEKS) + timedelta(days=1)
    for _ in judge(campaign=made, users=make_cast(), since=since, until=until):
        pass
    items = made.items.work().count() * made.min_judgements
    given = given_judgements(made)
    return f"{given} simulated judgements, {given / items:.0%} of what is wanted"


def review(demo: Demo) -> str:
    """Some disputes settled, some left; the statistics of the pages."""
    del demo
    made = Campaign.objects.get(slug=plan.CAMPAIGN)
    settle_disputes(campaign=made, reviewer=make_reviewer(), share=SETTLED)
    if newest(made, "overview") is None:
        compute_statistics(campaign=made)
    left = ItemConsensus.objects.filter(campaign=made, state="disputed").count()
    decided = Adjudication.objects.current().filter(campaign=made).count()
    return f"{decided} disputes settled by a simulated reviewer, {left} left to settle"


def release(demo: Demo) -> str:
    """A frozen release of what is verified by now."""
    del demo
    made = Release.objects.filter(name=RELEASE).first()
    if made is None:
        made = freeze_release(
            name=RELEASE,
            campaign=Campaign.objects.get(slug=plan.CAMPAIGN),
            rule="majority",
            actor=User.objects.get(username="demo-admin"),
            notes="Drawn scenes, judged by simulated annotators: for looking around only.",
            public=True,
        )
    return f"release {made} with {made.n_verified} verified images"


def export(demo: Demo) -> str:
    """The release as files."""
    if not (demo.export / "manifest.json").exists():
        # A folder without its manifest is a rest of something else: the writer replaces it whole.
        call_command(
            "export_crochum",
            release=RELEASE,
            out=str(demo.export),
            formats=list(FORMATS),
            force=demo.export.exists(),
            stdout=io.StringIO(),
        )
    return f"exported as {' and '.join(FORMATS)} to {demo.export}"


def benchmark(demo: Demo) -> str:
    """Scores of the metrics that need no torch."""
    del demo
    done = set(
        MetricRun.objects.filter(release__name=RELEASE, state=RunState.DONE).values_list(
            "metric__name", flat=True
        )
    )
    missing = [name for name in METRICS if name not in done]
    if missing:
        call_command("run_benchmark", metric=missing, release=RELEASE, stdout=io.StringIO())
    return f"scored by {', '.join(METRICS)}"


STEPS: tuple[tuple[str, Callable[[Demo], str]], ...] = (
    ("Accounts", accounts),
    ("Prompts", prompts),
    ("Images", images),
    ("Campaign", campaign),
    ("Judging", judgements),
    ("Review", review),
    ("Release", release),
    ("Export", export),
    ("Benchmark", benchmark),
)


def run(demo: Demo) -> Iterator[tuple[str, str]]:
    """Do the steps; yields the name of each and what it did."""
    check_database_is_ours()
    for name, step in STEPS:
        yield name, step(demo)
