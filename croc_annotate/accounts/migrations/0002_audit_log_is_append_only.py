from __future__ import annotations

from django.db import migrations

TABLE = "accounts_auditevent"


def forbid_changes(apps, schema_editor):
    """Refuse UPDATE and DELETE in the database itself: whoever holds the admin site holds no eraser."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            """
            CREATE FUNCTION audit_is_append_only() RETURNS trigger AS $$
            BEGIN RAISE EXCEPTION 'the audit log is append-only'; END
            $$ LANGUAGE plpgsql;
            """
        )
        schema_editor.execute(
            f"CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON {TABLE} "
            "FOR EACH ROW EXECUTE FUNCTION audit_is_append_only()"
        )
    else:
        for verb in ("UPDATE", "DELETE"):
            schema_editor.execute(
                f"CREATE TRIGGER audit_append_only_{verb.lower()} BEFORE {verb} ON {TABLE} "
                "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
            )


def allow_changes(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP TRIGGER audit_append_only ON {TABLE}")
        schema_editor.execute("DROP FUNCTION audit_is_append_only()")
    else:
        schema_editor.execute("DROP TRIGGER audit_append_only_update")
        schema_editor.execute("DROP TRIGGER audit_append_only_delete")


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]

    operations = [migrations.RunPython(forbid_changes, allow_changes)]
