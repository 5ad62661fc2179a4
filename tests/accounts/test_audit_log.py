from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction

from croc_annotate.accounts.models import AuditEvent
from croc_annotate.accounts.services import record_audit
from tests.factories import make_user


@pytest.fixture
def event(db) -> AuditEvent:
    return record_audit(
        actor=make_user("admin"), action="campaign.open", subject_type="campaign", subject_id=1
    )


def test_an_event_cannot_be_changed(event: AuditEvent):
    event.action = "nothing"
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        event.save()


def test_an_event_cannot_be_deleted(event: AuditEvent):
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        AuditEvent.objects.filter(pk=event.pk).delete()
    assert AuditEvent.objects.count() == 1


def test_the_actor_of_an_event_cannot_be_deleted(event: AuditEvent):
    from django.db.models import ProtectedError

    with pytest.raises(ProtectedError):
        event.actor.delete()
