"""All data of one person: to be read by them, or taken off what is kept.

`export_person` writes what the database holds about a person. `pseudonymise_person` takes away
who they are and leaves what they judged. What tables there are is asked of the models, so that a
table that comes later is not forgotten (tests/operations/test_privacy.py proves it).
"""

from __future__ import annotations

import json
import secrets
import zipfile
from typing import TYPE_CHECKING, Any

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import F, ForeignKey
from django.utils import timezone

from croc_annotate.accounts.models import ApiToken, OidcIdentity, PlatformIdentity, User
from croc_annotate.accounts.services import record_audit
from croc_annotate.agreement.models import Adjudication
from croc_annotate.annotation.models import Assignment, Flag, Judgement, Submission

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from django.db.models import Model, QuerySet

# What opens an account, or the answers that people are tested with.
SECRETS = {"password", "sha256", "session_data", "known_verdict"}
README = """All data that this site holds about the account "{username}", as of {at}.

One JSON file for each table with rows of this person; times are UTC. Passwords and keys are not
in here: the site itself cannot read them. accounts.user.json is the account; sign_ins.json and
sessions.json say when and from where it was used; annotation.judgement.json holds the answers,
each with the text that was shown.
"""


class PrivacyError(Exception):
    """What cannot be done to this account; the message says why."""


def references() -> Iterator[tuple[type[Model], str]]:
    """All columns that name a person: model and field."""
    for model in apps.get_models(include_auto_created=True):
        for field in model._meta.concrete_fields:
            if isinstance(field, ForeignKey) and field.related_model is User:
                yield model, field.name


def _sessions_of(user: User) -> Iterator[Session]:
    for session in Session.objects.iterator(chunk_size=1000):
        if session.get_decoded().get("_auth_user_id") == str(user.pk):
            yield session


def _plain(rows: QuerySet[Any], **more: Any) -> list[dict[str, Any]]:
    names = [f.attname for f in rows.model._meta.concrete_fields if f.name not in SECRETS]
    return list(rows.order_by("pk").values(*names, **more))


def collect_person(*, user: User) -> dict[str, list[dict[str, Any]]]:
    """The rows about a person by table name."""
    tables = {"accounts.user": _plain(User.objects.filter(pk=user.pk))}
    for model, field in references():
        rows = model._base_manager.filter(**{field: user})
        more = {}
        if model is Judgement:
            more = {"campaign_slug": F("campaign__slug"), "pair": F("item__pair__slug"),
                    "prompt": F("item__pair__prompt"), "contrast": F("item__pair__contrast"),
                    "made_for": F("item__candidate__side"), "judged_against": F("item__text_role")}  # fmt: skip
        found = _plain(rows, **more)
        if found:
            known = tables.setdefault(model._meta.label_lower, [])
            known += [row for row in found if row not in known]
    tables["sessions"] = [{"expires": session.expire_date} for session in _sessions_of(user)]
    tables["sign_ins"] = [
        row
        for model in (AccessAttempt, AccessLog, AccessFailureLog)
        for row in _plain(model.objects.filter(username=user.username))
    ]
    return {name: rows for name, rows in tables.items() if rows}


def export_person(*, user: User, path: Path, actor: User | None) -> dict[str, int]:
    """Write everything about a person to a new ZIP file; returns the rows of each table.

    Raises ``FileExistsError``.
    """
    tables = collect_person(user=user)
    with path.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        at = timezone.now().strftime("%Y-%m-%d %H:%M UTC")
        archive.writestr("README.txt", README.format(username=user.username, at=at))
        for name, rows in tables.items():
            text = json.dumps(rows, cls=DjangoJSONEncoder, ensure_ascii=False, indent=1)
            archive.writestr(f"{name}.json", text)
    path.chmod(0o600)
    record_audit(actor=actor, action="person.export", subject_type="user", subject_id=user.pk)
    return {name: len(rows) for name, rows in tables.items()}


def pseudonymise_person(
    *, user: User, actor: User | None, force: bool = False, with_remarks: bool = False
) -> str:
    """Take away who a person is and close the account; judgements stay. Returns the new name.

    With ``with_remarks`` also what they wrote in their own words. Raises ``PrivacyError`` for an
    admin without ``force``, and for an account that is a pseudonym already.
    """
    if user.may_administer and not force:
        raise PrivacyError(
            f"{user.username} is an admin: pseudonymise with --force, when others can administer."
        )
    if user.pseudonymised_at:
        raise PrivacyError(f"{user.username} is a pseudonym already.")
    with transaction.atomic():
        _forget_sign_ins(user)
        forget_platforms(users=User.objects.filter(pk=user.pk))
        OidcIdentity.objects.filter(user=user).delete()
        ApiToken.objects.filter(user=user).delete()
        if with_remarks:
            _clear_remarks(user)
        _clear_account(user)
        record_audit(
            actor=actor,
            action="person.pseudonymise",
            subject_type="user",
            subject_id=user.pk,
            details={"remarks": with_remarks},
        )
    return str(user.username)


def forget_platforms(*, users: QuerySet[User]) -> int:
    """Remove the ids by which platforms know these people and their visits."""
    Submission.objects.filter(annotator__in=users).update(session_id="", earlier_sessions=[])
    removed, _ = PlatformIdentity.objects.filter(user__in=users).delete()
    return removed


def _forget_sign_ins(user: User) -> None:
    Session.objects.filter(pk__in=[session.pk for session in _sessions_of(user)]).delete()
    for model in (AccessAttempt, AccessLog, AccessFailureLog):
        model.objects.filter(username=user.username).delete()
    # Django's admin site notes the names of what was edited there.
    kind = ContentType.objects.get_for_model(User)
    LogEntry.objects.filter(content_type=kind, object_id=str(user.pk)).delete()


def _clear_remarks(user: User) -> None:
    for model in (Judgement, Assignment, Flag):
        model._base_manager.filter(annotator=user).exclude(remark="").update(remark="")
    Adjudication.objects.filter(reviewer=user).exclude(note="").update(note="")


def _clear_account(user: User) -> None:
    user.username = f"person-{secrets.token_hex(6)}"
    for name in ("first_name", "last_name", "display_name", "email", "language", "timezone"):
        setattr(user, name, "")
    user.theme, user.shortcuts = "", {}
    user.set_unusable_password()
    user.is_active = user.is_staff = user.is_superuser = False
    user.last_login = None
    user.pseudonymised_at = timezone.now()
    user.save()
