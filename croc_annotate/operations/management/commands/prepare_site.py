"""``manage.py prepare_site``: what must be there before the servers of a version start."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    """Migrate, collect the static files, make the bucket."""

    help = (
        "Prepare this installation for its servers: apply the migrations, collect the static "
        "files of this version and, with S3, make the bucket where it is missing (private). "
        "Every step may be repeated; docker-compose.yml runs it at each start."
    )
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Take the steps."""
        call_command("migrate", interactive=False, verbosity=0)
        self.stdout.write("migrations: all applied")
        # Older files stay: pages that are open in browsers still ask for them.
        call_command("collectstatic", interactive=False, verbosity=0)
        self.stdout.write(f"static files: in {settings.STATIC_ROOT}")
        if settings.S3_BUCKET:
            self.stdout.write(f"bucket {settings.S3_BUCKET}: {self._bucket()}")

    def _bucket(self) -> str:
        client = default_storage.connection.meta.client  # type: ignore[attr-defined]
        try:
            client.head_bucket(Bucket=settings.S3_BUCKET)
        except ClientError as error:
            if error.response["Error"]["Code"] not in {"404", "NoSuchBucket"}:
                raise CommandError(f"The bucket {settings.S3_BUCKET}: {error}") from error
        except BotoCoreError as error:
            raise CommandError(f"The store does not answer: {error}") from error
        else:
            return "is there"
        region = client.meta.region_name
        # us-east-1 is the one region that must not be named.
        place = {} if region in {None, "us-east-1"} else {"LocationConstraint": region}
        client.create_bucket(
            Bucket=settings.S3_BUCKET, **({"CreateBucketConfiguration": place} if place else {})
        )
        return "made"
