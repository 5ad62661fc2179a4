"""Acts on accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from croc_annotate.accounts.models import AuditEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from croc_annotate.accounts.models import User


def record_audit(
    *,
    actor: User | None,
    action: str,
    subject_type: str,
    subject_id: object,
    details: dict[str, Any] | None = None,
) -> AuditEvent:
    """Add a line to the audit log (in the caller's transaction, so that it stands or falls with the act)."""
    return AuditEvent.objects.create(
        actor=actor,
        action=action,
        subject_type=subject_type,
        subject_id=str(subject_id),
        details=details or {},
    )


def record_audits(
    *, actor: User | None, action: str, subject_type: str, details: Mapping[int, dict[str, Any]]
) -> None:
    """Add a line for each subject (key → its details), in one statement; see `record_audit`."""
    AuditEvent.objects.bulk_create(
        AuditEvent(
            actor=actor,
            action=action,
            subject_type=subject_type,
            subject_id=str(subject),
            details=told,
        )
        for subject, told in details.items()
    )


def update_shortcuts(*, user: User, shortcuts: dict[str, str]) -> None:
    """Keep a person's own keys of the judging page (checked by the caller)."""
    user.shortcuts = shortcuts
    user.save(update_fields=["shortcuts"])
