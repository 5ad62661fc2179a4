"""Acts on releases: freeze, withdraw, show."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from croc_annotate.accounts.services import record_audit
from croc_annotate.agreement.consensus import Rule, RuleRefusedError
from croc_annotate.agreement.reading import campaign_data
from croc_annotate.agreement.selectors import campaign_consensus
from croc_annotate.agreement.services import report_of
from croc_annotate.annotation.models import Judgement
from croc_annotate.releases.freezing import (
    candidates_in_scope,
    generator_facts,
    store_annotations,
    store_members,
    verdicts_by_candidate,
)
from croc_annotate.releases.models import Release, ReleaseState
from croc_annotate.releases.sealing import content_sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from croc_annotate.accounts.models import User
    from croc_annotate.agreement.reading import CampaignData
    from croc_annotate.agreement.selectors import ConsensusTable
    from croc_annotate.annotation.models import Campaign

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?")


# What freezing does, in this order; the last one takes about a third of the time.
STEPS = ("read", "decide", "members", "judgements", "agreement", "seal")


class ReleaseRefusedError(ValueError):
    """The release cannot be made or changed so; the message says why and what helps."""


def freeze_release(
    *,
    name: str,
    campaign: Campaign,
    version: str = "1.0.0",
    rule: str | None = None,
    min_judgements: int | None = None,
    threshold: float | None = None,
    exclusive: bool = False,
    actor: User | None = None,
    notes: str = "",
    public: bool = False,
    now: datetime | None = None,
    step: Callable[[str], object] = lambda name: None,
) -> Release:
    """Fix who is verified under a rule, with all numbers; raises ReleaseRefusedError.

    ``step`` is told each of ``STEPS`` as it begins.
    """
    check_name(name, version)
    chosen = _rule(campaign, rule, min_judgements, threshold)
    release = Release(
        name=name, version=version, campaign=campaign, rule=chosen.name, notes=notes,
        created_by=actor, created_at=now or timezone.now(), is_public=public,
        parameters=_parameters(campaign, chosen, exclusive=exclusive),
    )  # fmt: skip
    with _alone(release), one_snapshot():
        _fill(release, campaign, chosen, exclusive=exclusive, step=step)
        step("seal")
        seal(release)
        record_audit(
            actor=actor, action="release.frozen", subject_type="release", subject_id=release.pk,
            details={"name": name, "version": version, "sha256": release.sha256},
        )  # fmt: skip
    return release


@contextmanager
def one_snapshot() -> Iterator[None]:
    """A transaction that sees the database as it was at one moment.

    Answers that come in while a release is frozen must not enter its judgements and not its
    counts. SQLite's transactions are like that anyway.
    """
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost and connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield


@contextmanager
def _alone(release: Release) -> Iterator[None]:
    """Tell two people who freeze one name at once that the other was quicker."""
    try:
        yield
    except IntegrityError as error:
        if "release_version_once" not in str(error) and "releases_release.name" not in str(error):
            raise
        raise ReleaseRefusedError(
            _("somebody froze %(release)s at the same time; give the next version")
            % {"release": release}
        ) from error


def _fill(
    release: Release,
    campaign: Campaign,
    rule: Rule,
    *,
    exclusive: bool,
    step: Callable[[str], object],
) -> None:
    """Write members, annotations and numbers of a release that is not sealed yet."""
    step("read")
    scope = candidates_in_scope(campaign)
    if not scope:
        raise ReleaseRefusedError(
            _("campaign “%(campaign)s” has no candidates; import or generate images first")
            % {"campaign": campaign.slug}
        )
    data = campaign_data(campaign)
    step("decide")
    table = _consensus(campaign, rule, data)
    release.is_simulated = _is_simulated(campaign)
    release.generators = generator_facts({item.generator for item in scope})
    release.save(force_insert=True)
    step("members")
    found = store_members(release, scope, verdicts_by_candidate(table), exclusive=exclusive)
    step("judgements")
    judgements = store_annotations(release, campaign)
    release.counts = found["counts"]
    release.manifest = {
        "by_category": found["by_category"],
        "pairs": found["pairs"],
        "annotations": judgements,
        "candidates": len(scope),
        **({"model": table.model} if rule.name == "posterior" else {}),
    }
    step("agreement")
    release.agreement = report_of(data, by=("category", "side", "generator"))


def seal(release: Release) -> None:
    """Compute the hash and close the release for ever (triggers hold it shut)."""
    release.save()
    # Read back, so that the hash is of what the database keeps.
    release.refresh_from_db()
    release.sha256 = content_sha256(release)
    release.sealed = True
    release.save(update_fields=["sha256", "sealed"])


@transaction.atomic
def withdraw_release(
    *, release: Release, note: str, actor: User | None = None, now: datetime | None = None
) -> Release:
    """Take a release back, for good, with the reason that its page and files then show."""
    note = note.strip()
    if not note:
        raise ReleaseRefusedError(_("say why the release is withdrawn"))
    changed = Release.objects.filter(pk=release.pk, state=ReleaseState.FROZEN).update(
        state=ReleaseState.WITHDRAWN, withdrawn_at=now or timezone.now(), withdrawn_note=note
    )
    if not changed:
        raise ReleaseRefusedError(_("%(release)s is withdrawn already") % {"release": release})
    record_audit(
        actor=actor, action="release.withdrawn", subject_type="release", subject_id=release.pk,
        details={"note": note},
    )  # fmt: skip
    release.refresh_from_db()
    return release


@transaction.atomic
def set_visibility(*, release: Release, public: bool, actor: User | None = None) -> Release:
    """Show a release's page to everybody, or to people who work here only."""
    Release.objects.filter(pk=release.pk).update(is_public=public)
    record_audit(
        actor=actor, action="release.shown" if public else "release.hidden",
        subject_type="release", subject_id=release.pk,
    )  # fmt: skip
    release.refresh_from_db()
    return release


def check_wishes(
    *,
    name: str,
    version: str,
    campaign: Campaign,
    rule: str | None = None,
    min_judgements: int | None = None,
    threshold: float | None = None,
    **_others: Any,
) -> None:
    """Raise ReleaseRefusedError for what can be refused before anything is read."""
    check_name(name, version)
    _rule(campaign, rule, min_judgements, threshold)


def check_name(name: str, version: str) -> None:
    """Raise ReleaseRefusedError for a name or version that files and addresses cannot hold."""
    if not _NAME.fullmatch(name):
        raise ReleaseRefusedError(
            _("“%(name)s” is no name for a release: use letters, digits, . _ - (80 at most)")
            % {"name": name}
        )
    if len(version) > 20 or not _VERSION.fullmatch(version):
        raise ReleaseRefusedError(
            _("“%(version)s” is not a version like 1.0.0") % {"version": version}
        )
    if Release.objects.filter(name=name, version=version).exists():
        raise ReleaseRefusedError(
            _("there is a release %(release)s; it cannot be changed: give the next --version")
            % {"release": f"{name} {version}"}
        )


def next_version(name: str) -> str:
    """The version after the newest of ``name``, or 1.0.0."""
    numbers = [
        tuple(int(part) for part in match.group(0).split("-")[0].split("."))
        for version in Release.objects.filter(name=name).values_list("version", flat=True)
        if (match := _VERSION.fullmatch(version))
    ]
    if not numbers:
        return "1.0.0"
    major, minor, _patch = max(numbers)
    return f"{major}.{minor + 1}.0"


def _rule(
    campaign: Campaign, rule: str | None, min_judgements: int | None, threshold: float | None
) -> Rule:
    try:
        return Rule(
            name=rule or campaign.rule,  # type: ignore[arg-type]
            min_judgements=min_judgements,
            threshold=threshold if threshold is not None else campaign.posterior_threshold,
        )
    except ValueError as error:
        raise ReleaseRefusedError(str(error)) from error


def _consensus(campaign: Campaign, rule: Rule, data: CampaignData) -> ConsensusTable:
    try:
        return campaign_consensus(campaign=campaign, rule=rule, data=data)
    except RuleRefusedError as error:
        raise ReleaseRefusedError(str(error)) from error


def _parameters(campaign: Campaign, rule: Rule, *, exclusive: bool) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        "campaign": campaign.slug,
        "guideline_version": campaign.guideline.version if campaign.guideline else "",
        "redundancy": campaign.redundancy,
        "min_judgements": rule.min_judgements or campaign.min_judgements,
        "exclusive": exclusive,
    }
    if campaign.redundancy == "adaptive":
        wanted["max_judgements"] = campaign.max_judgements
    if rule.name == "posterior":
        wanted["threshold"] = rule.threshold
    return wanted


def _is_simulated(campaign: Campaign) -> bool:
    counted = Judgement.objects.counted(campaign)
    return campaign.is_simulated or counted.filter(annotator__is_simulated=True).exists()
