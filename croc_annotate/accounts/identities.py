"""Which account belongs to whom a sign-in provider names."""

from __future__ import annotations

import secrets

from django.db import IntegrityError, transaction

from croc_annotate.accounts.models import OidcIdentity, Role, User
from croc_annotate.accounts.oidc import Claims, SignInError
from croc_annotate.accounts.services import record_audit


def account_of(*, claims: Claims, may_create: bool) -> User:
    """The account that signs in, made at the first visit; its role follows the groups.

    People are known by issuer and subject and by nothing else: a name or an address that the
    provider tells could be another person's next year. Raises `SignInError` for a closed
    account, or for a person without one where none are made.
    """
    user = _known(claims)
    if user is None:
        if not may_create:
            raise SignInError("no_account")
        user = _make(claims)
    if not user.is_active:
        raise SignInError("inactive")
    _follow_groups(user, claims.role)
    return user


def link_account(*, user: User, claims: Claims) -> None:
    """Let a signed-in person sign in this way from now on. A second time changes nothing."""
    try:
        with transaction.atomic():
            OidcIdentity.objects.create(user=user, issuer=claims.issuer, subject=claims.subject)
            record_audit(
                actor=user, action="account.linked", subject_type="user", subject_id=user.pk
            )
    except IntegrityError:
        if _known(claims) != user:
            raise SignInError("taken") from None


def _known(claims: Claims) -> User | None:
    identity = (
        OidcIdentity.objects.filter(issuer=claims.issuer, subject=claims.subject)
        .select_related("user")
        .first()
    )
    return identity.user if identity else None


def _make(claims: Claims) -> User:
    try:
        with transaction.atomic():
            # The name tells nothing about the person: it stands in logs and address lines.
            user: User = User.objects.create_user(
                f"member-{secrets.token_hex(6)}",
                display_name=claims.name,
                role=claims.role or Role.ANNOTATOR,
            )
            OidcIdentity.objects.create(user=user, issuer=claims.issuer, subject=claims.subject)
            record_audit(
                actor=user,
                action="account.made_at_sign_in",
                subject_type="user",
                subject_id=user.pk,
                details={"role": user.role},
            )
            return user
    except IntegrityError:  # two tabs at the first visit
        return OidcIdentity.objects.get(issuer=claims.issuer, subject=claims.subject).user


def _follow_groups(user: User, role: str | None) -> None:
    """Whoever left the admins' group is no admin here either. A superuser stays: the way back in."""
    if role is None or role == user.role or user.is_superuser:
        return
    with transaction.atomic():
        record_audit(
            actor=user,
            action="account.role_by_groups",
            subject_type="user",
            subject_id=user.pk,
            details={"before": user.role, "after": role},
        )
        user.role = role
        user.save(update_fields=["role"])
