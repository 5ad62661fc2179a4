"""Triggers that keep a sealed release as it is, whoever talks to the database.

What may change afterwards: the withdrawal, the visibility, nothing else. An INSERT is refused
only while the sealed release exists, so a backup that lists the parts before their release (the
foreign keys are checked at the end of the transaction) can be restored.
"""

from django.db import migrations

PARTS = ("releases_releasepair", "releases_releasemember", "releases_releaseannotation")
FROZEN_COLUMNS = (
    "name", "version", "sealed", "campaign_id", "origin", "rule", "parameters", "notes", "counts",
    "generators", "agreement", "manifest", "sha256", "is_simulated", "created_by_id", "created_at",
)  # fmt: skip
MESSAGE = "a frozen release cannot be changed; withdraw it and freeze a new one"

POSTGRESQL = f"""
CREATE FUNCTION releases_refuse_part() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND EXISTS (
      SELECT 1 FROM releases_release WHERE id = OLD.release_id AND sealed) THEN
    RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF TG_OP <> 'DELETE' AND EXISTS (
      SELECT 1 FROM releases_release WHERE id = NEW.release_id AND sealed) THEN
    RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION releases_refuse_release() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.sealed AND (TG_OP = 'DELETE' OR {{changed}}) THEN
    RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  IF OLD.state = 'withdrawn' AND (NEW.state <> OLD.state
      OR NEW.withdrawn_at IS DISTINCT FROM OLD.withdrawn_at
      OR NEW.withdrawn_note IS DISTINCT FROM OLD.withdrawn_note) THEN
    RAISE EXCEPTION 'a withdrawal is final' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER releases_release_frozen BEFORE UPDATE OR DELETE ON releases_release
  FOR EACH ROW EXECUTE FUNCTION releases_refuse_release();
""".format(
    changed=" OR ".join(f"NEW.{name} IS DISTINCT FROM OLD.{name}" for name in FROZEN_COLUMNS)
)

SQLITE_CHANGED = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in FROZEN_COLUMNS)
SQLITE = [
    f"CREATE TRIGGER releases_release_frozen_u BEFORE UPDATE ON releases_release "
    f"WHEN OLD.sealed AND ({SQLITE_CHANGED}) BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END",
    f"CREATE TRIGGER releases_release_frozen_d BEFORE DELETE ON releases_release "
    f"WHEN OLD.sealed BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END",
    "CREATE TRIGGER releases_release_withdrawn_u BEFORE UPDATE ON releases_release "
    "WHEN OLD.state = 'withdrawn' AND (NEW.state <> OLD.state "
    "OR NEW.withdrawn_at IS NOT OLD.withdrawn_at OR NEW.withdrawn_note IS NOT OLD.withdrawn_note) "
    "BEGIN SELECT RAISE(ABORT, 'a withdrawal is final'); END",
]


def _sqlite_parts():
    for table in PARTS:
        for event, row in (
            ("INSERT", "NEW"),
            ("UPDATE", "OLD"),
            ("UPDATE", "NEW"),
            ("DELETE", "OLD"),
        ):
            name = f"{table}_frozen_{event[0].lower()}{row[0].lower()}"
            yield (
                f"CREATE TRIGGER {name} BEFORE {event} ON {table} "
                f"WHEN EXISTS (SELECT 1 FROM releases_release WHERE id = {row}.release_id AND sealed) "
                f"BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END",
                f"DROP TRIGGER IF EXISTS {name}",
            )


def make_triggers(apps, schema_editor):
    """Install the triggers of the database at hand."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRESQL, params=None)
        for table in PARTS:
            schema_editor.execute(
                f"CREATE TRIGGER {table}_frozen BEFORE INSERT OR UPDATE OR DELETE ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION releases_refuse_part()"
            )
    elif schema_editor.connection.vendor == "sqlite":
        for create in [*SQLITE, *(create for create, _ in _sqlite_parts())]:
            schema_editor.execute(create, params=None)


def drop_triggers(apps, schema_editor):
    """Take the triggers away again."""
    if schema_editor.connection.vendor == "postgresql":
        for table in PARTS:
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {table}_frozen ON {table}")
        schema_editor.execute(
            "DROP TRIGGER IF EXISTS releases_release_frozen ON releases_release;"
            "DROP FUNCTION IF EXISTS releases_refuse_part(); "
            "DROP FUNCTION IF EXISTS releases_refuse_release();"
        )
    elif schema_editor.connection.vendor == "sqlite":
        for suffix in ("frozen_u", "frozen_d", "withdrawn_u"):
            schema_editor.execute(f"DROP TRIGGER IF EXISTS releases_release_{suffix}")
        for _, drop in _sqlite_parts():
            schema_editor.execute(drop)


class Migration(migrations.Migration):
    dependencies = [("releases", "0001_initial")]

    operations = [migrations.RunPython(make_triggers, drop_triggers)]
