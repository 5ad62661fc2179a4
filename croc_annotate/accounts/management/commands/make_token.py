"""``manage.py make_token``: a key for a script."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from croc_annotate.accounts.models import User
from croc_annotate.accounts.tokens import SCOPES, create_token

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Make an API token for a person and print it once."""

    help = (
        "Make an API token that acts as USER and print it. It is stored as a hash: nobody can read "
        "it again. The token may do what the person's role may, within its scopes."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("user", help="the person's user name")
        parser.add_argument("--name", required=True, help="what the token is for")
        parser.add_argument(
            "--scope", action="append", choices=SCOPES, help="may be repeated; default: read"
        )
        parser.add_argument("--days", type=int, default=90, help="days until it ends (default 90)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the token."""
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active account named {options['user']}.")
        if options["days"] < 1:
            raise CommandError("--days: give at least 1.")
        text = create_token(
            user=user,
            name=options["name"],
            scopes=options["scope"] or ["read"],
            expires_at=timezone.now() + timedelta(days=options["days"]),
        )
        self.stdout.write(text)
