"""A table for freezing in the background, and a release that is written many times faster.

Whether a release is sealed is asked once a statement when rows come in, not once a row; and the
judgements, written as a join with the members, have no foreign keys of their own to be checked
one by one.
"""

import importlib

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_row_by_row = importlib.import_module("croc_annotate.releases.migrations.0002_frozen_stays_frozen")
PARTS, MESSAGE = _row_by_row.PARTS, _row_by_row.MESSAGE

POSTGRESQL = f"""
CREATE FUNCTION releases_refuse_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM releases_release
             WHERE sealed AND id IN (SELECT release_id FROM added)) THEN
    RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
"""


def before(apps, schema_editor):
    """SQLite writes a table anew to change a column, and loses its triggers on the way."""
    if schema_editor.connection.vendor == "sqlite":
        _row_by_row.drop_triggers(apps, schema_editor)


def after(apps, schema_editor):
    """All triggers, those for new rows once a statement where the database can."""
    if schema_editor.connection.vendor == "sqlite":
        _row_by_row.make_triggers(apps, schema_editor)
    elif schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRESQL, params=None)
        for table in PARTS:
            schema_editor.execute(f"DROP TRIGGER {table}_frozen ON {table}")
            schema_editor.execute(
                f"CREATE TRIGGER {table}_frozen BEFORE UPDATE OR DELETE ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION releases_refuse_part()"
            )
            schema_editor.execute(
                f"CREATE TRIGGER {table}_added AFTER INSERT ON {table} REFERENCING NEW TABLE AS "
                "added FOR EACH STATEMENT EXECUTE FUNCTION releases_refuse_added()"
            )


def back(apps, schema_editor):
    """Row by row again."""
    if schema_editor.connection.vendor == "sqlite":
        _row_by_row.drop_triggers(apps, schema_editor)
    elif schema_editor.connection.vendor == "postgresql":
        for table in PARTS:
            schema_editor.execute(f"DROP TRIGGER {table}_added ON {table}")
            schema_editor.execute(f"DROP TRIGGER {table}_frozen ON {table}")
            schema_editor.execute(
                f"CREATE TRIGGER {table}_frozen BEFORE INSERT OR UPDATE OR DELETE ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION releases_refuse_part()"
            )
        schema_editor.execute("DROP FUNCTION releases_refuse_added()")


def back_before(apps, schema_editor):
    """The triggers that SQLite lost on the way back."""
    if schema_editor.connection.vendor == "sqlite":
        _row_by_row.make_triggers(apps, schema_editor)


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0002_index_of_held_leases"),
        ("candidates", "0003_left_files"),
        ("releases", "0002_frozen_stays_frozen"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(before, back_before),
        migrations.AlterField(
            model_name="releaseannotation",
            name="candidate",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="candidates.candidate",
            ),
        ),
        migrations.AlterField(
            model_name="releaseannotation",
            name="release",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="annotations",
                to="releases.release",
            ),
        ),
        migrations.AlterField(
            model_name="releasemember",
            name="release",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="members",
                to="releases.release",
            ),
        ),
        migrations.CreateModel(
            name="ReleaseFreeze",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("version", models.CharField(max_length=20)),
                (
                    "options",
                    models.JSONField(default=dict, help_text="Rule, numbers, notes, visibility."),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                        ],
                        default="waiting",
                        max_length=7,
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("created_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "campaign",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="annotation.campaign",
                    ),
                ),
                (
                    "release",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="freeze",
                        to="releases.release",
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state__in", ["waiting", "running"])),
                        fields=("name", "version"),
                        name="release_freeze_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "done"), _negated=True),
                            ("release__isnull", False),
                            _connector="OR",
                        ),
                        name="release_freeze_done_has_release",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "failed"), _negated=True),
                            models.Q(("error", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="release_freeze_failed_has_reason",
                    ),
                ],
            },
        ),
        migrations.RunPython(after, back),
    ]
