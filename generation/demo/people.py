"""The demo's accounts: three that a visitor signs in with, and the simulated annotators."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from croc_annotate.accounts.models import Role, User
from generation.demo.cast import CAST

if TYPE_CHECKING:
    from pathlib import Path

VISITORS = (
    ("demo-admin", "Demo admin", Role.ADMIN),
    ("demo-reviewer", "Demo reviewer", Role.REVIEWER),
    ("demo-annotator", "Demo annotator", Role.ANNOTATOR),
)
_SYLLABLES = [
    "ba",
    "be",
    "bo",
    "da",
    "de",
    "do",
    "ka",
    "ke",
    "ko",
    "la",
    "le",
    "lo",
    "ma",
    "me",
    "mo",
    "na",
    "ne",
    "no",
    "pa",
    "pe",
    "po",
    "ra",
    "re",
    "ro",
    "ta",
    "te",
    "to",
]


@dataclass(frozen=True)
class Login:
    """What a visitor signs in with."""

    username: str
    password: str
    role: str


def make_logins(file: Path) -> list[Login]:
    """The visitors' accounts with the passwords kept in ``file``; new ones where it lacks any."""
    kept: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    logins = []
    for username, label, role in VISITORS:
        user, created = User.objects.get_or_create(
            username=username, defaults={"display_name": label, "role": role}
        )
        password = kept.get(username)
        if created or password is None or not user.check_password(password):
            password = _password()
            user.set_password(password)
            user.save(update_fields=["password"])
        kept[username] = password
        logins.append(Login(username, password, role))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.write_text(json.dumps(kept, indent=1) + "\n")
    return logins


def make_cast() -> list[User]:
    """The simulated annotators, marked as such; nobody can sign in as one of them."""
    users = []
    for person in CAST:
        user, created = User.objects.get_or_create(
            username=person.username,
            defaults={"display_name": person.label, "is_simulated": True},
        )
        if created:
            user.set_unusable_password()
            user.save(update_fields=["password"])
        users.append(user)
    return users


def make_reviewer() -> User:
    """The simulated reviewer, who settles some disputes."""
    user: User
    user, created = User.objects.get_or_create(
        username="sim-reviewer",
        defaults={
            "display_name": "Simulated reviewer",
            "is_simulated": True,
            "role": Role.REVIEWER,
        },
    )
    if created:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user


def _password() -> str:
    """Easy to type, about 43 bits: it guards drawn pictures on one's own machine."""
    return "-".join("".join(secrets.choice(_SYLLABLES) for _ in range(3)) for _ in range(3))
