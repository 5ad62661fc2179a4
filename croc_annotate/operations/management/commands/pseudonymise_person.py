"""``manage.py pseudonymise_person``: take away who somebody is, keep what they judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from croc_annotate.accounts.models import User
from croc_annotate.operations.privacy import PrivacyError, pseudonymise_person

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Irreversible."""

    help = (
        "Remove a person's name, e-mail address, platform and sign-in identities, sessions, API "
        "tokens, preferences and last sign-in, and close the account. Judgements stay, under a "
        "random name. It cannot be undone; the audit log notes it. Old backups still hold the name."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("user", help="the person's user name")
        parser.add_argument("--yes", action="store_true", help="do it; without this it only asks")
        parser.add_argument("--force", action="store_true", help="also when the person is an admin")
        parser.add_argument(
            "--with-remarks",
            action="store_true",
            help="also remove what the person wrote in their own words",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it."""
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no account named {options['user']}.")
        if not options["yes"]:
            raise CommandError(
                f"{user.username} cannot be told from others afterwards, and nothing brings the "
                "name back. Give --yes to do it (`export_person` first, if they want their data)."
            )
        try:
            name = pseudonymise_person(
                user=user,
                actor=None,
                force=options["force"],
                with_remarks=options["with_remarks"],
            )
        except PrivacyError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{options['user']} is now {name}")
