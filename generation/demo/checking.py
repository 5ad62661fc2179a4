"""Does the demo hold what it promises? Looks at rows, files and pages, and names what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.test import Client

from croc_annotate.accounts.models import User
from croc_annotate.agreement.models import Adjudication, ItemConsensus
from croc_annotate.agreement.services import agreement_report
from croc_annotate.annotation.models import Campaign, Judgement
from croc_annotate.benchmark.models import MetricRun, RunState
from croc_annotate.candidates.models import Candidate
from croc_annotate.prompts.models import ContrastPair
from croc_annotate.releases.models import Release
from croc_annotate.releases.verifying import verify_export
from generation.demo import campaign as plan
from generation.demo.judging import SOURCE, given_judgements, wanted_judgements
from generation.demo.steps import FORMATS, METRICS, RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from generation.demo.steps import Demo

PAIRS = 40
# Address, who asks for it (nobody: a visitor), and a word that must be on the page.
PAGES = (
    ("/", "", "CROC"),
    ("/accounts/login/", "", "password"),
    ("/leaderboard/", "", "random"),
    ("/prompts/", "demo-reviewer", "counting_scene1"),
    ("/images/", "demo-reviewer", "scenes"),
    ("/annotate/", "demo-annotator", plan.TITLE),
    (f"/annotate/{plan.CAMPAIGN}/", "demo-annotator", plan.TITLE),
    ("/agreement/", "demo-reviewer", "Simulated"),
    ("/agreement/report/", "demo-reviewer", "Krippendorff"),
    ("/agreement/annotators/", "demo-admin", "Simulated annotator 6"),
    ("/review/", "demo-reviewer", "Yes, accept"),
    ("/releases/", "demo-reviewer", RELEASE),
    ("/generation/", "demo-admin", "scenes_loose"),
)


def faults(demo: Demo) -> list[str]:
    """Everything that is missing, in words; nothing when the demo is whole."""
    looks: tuple[Callable[[Demo], Iterator[str]], ...] = (
        _rows,
        _judging,
        _release_and_files,
        _scores,
        _pages,
    )
    return [fault for look in looks for fault in look(demo)]


def _rows(demo: Demo) -> Iterator[str]:
    pairs = ContrastPair.objects.active().in_bank(plan.BANK).count()
    if pairs != PAIRS:
        yield f"{pairs} pairs instead of {PAIRS}"
    unfinished = Candidate.objects.exclude(state="rendered").count()
    if unfinished or not Candidate.objects.exists():
        yield f"{unfinished} images are not drawn"
    for login in demo.logins:
        user = User.objects.active().get(username=login.username)
        if not user.check_password(login.password):
            yield f"{login.username} cannot sign in with the password that is shown"


def _judging(demo: Demo) -> Iterator[str]:
    del demo
    campaign = Campaign.objects.get(slug=plan.CAMPAIGN)
    given, wanted = given_judgements(campaign), wanted_judgements(campaign)
    if not 0.95 * wanted <= given:
        yield f"{given} judgements instead of about {wanted}"
    people = Judgement.objects.filter(source=SOURCE)
    if people.exclude(annotator__is_simulated=True).exists():
        yield "a simulated judgement is not of a simulated annotator"
    if not campaign.items.incomplete().exists():
        yield "nothing is left for a visitor to judge"
    if not Adjudication.objects.current().filter(campaign=campaign).exists():
        yield "no dispute was settled"
    if not ItemConsensus.objects.filter(campaign=campaign, state="disputed").exists():
        yield "no dispute is left to look at"
    report = agreement_report(campaign=campaign, draws=50)["all"]
    for name in ("raw_agreement", "krippendorff_alpha", "gwet_ac1"):
        if report[name] is None:
            yield f"agreement has no {name}: {report['undefined'].get(name)}"


def _release_and_files(demo: Demo) -> Iterator[str]:
    release = Release.objects.filter(name=RELEASE).first()
    if release is None or not release.n_verified:
        yield "there is no release with verified images"
        return
    manifest = demo.export / "manifest.json"
    if not manifest.exists():
        yield f"{manifest} is missing"
        return
    for name in FORMATS:
        if not (demo.export / name).is_dir():
            yield f"the export has no {name}"
    for check in verify_export(demo.export):
        if not check.ok:
            yield f"the export fails: {check.name}: {'; '.join(check.faults[:3])}"


def _scores(demo: Demo) -> Iterator[str]:
    del demo
    for name in METRICS:
        run = MetricRun.objects.filter(release__name=RELEASE, metric__name=name).first()
        if run is None or run.state != RunState.DONE or not run.n_scores:
            yield f"metric {name} has no scores: {run.error if run else 'it did not run'}"


def _pages(demo: Demo) -> Iterator[str]:
    del demo
    for address, username, word in PAGES:
        client = Client(SERVER_NAME="localhost", raise_request_exception=False)
        if username:
            client.force_login(User.objects.get(username=username))
        reply = client.get(address, follow=True)
        body = reply.content.decode()
        if reply.status_code != 200 or word not in body:
            yield f"{address} answers {reply.status_code} without “{word}”"
