"""Bring the rows of an old release to this version, in a database of its own.

    DATABASE_URL=… python -m tests.upgrades.upgrade tests/data/upgrades/0.1.0.tar.gz

Migrates the empty database to the state of the old release, loads its rows through the models as
they were then, migrates to this version, compares every value of every row, and goes back to the
old state, compares again, and comes forward once more. Prints one JSON document.
"""

from __future__ import annotations

import json
import sys
import tarfile
from typing import Any

import django

# Columns that a migration is meant to change, with the reason. Nothing yet.
MEANT_TO_CHANGE: dict[tuple[str, str], str] = {}
Rows = dict[str, list[dict[str, Any]]]


def read_fixture(path: str) -> tuple[dict[str, Any], Rows]:
    """The manifest and the rows of a backup, table by table in its order."""
    with tarfile.open(path) as archive:
        files = {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}  # type: ignore[union-attr]
    manifest = json.loads(files["manifest.json"])
    rows = {
        label: [json.loads(line) for line in files[f"rows/{label}.jsonl"].splitlines()]
        for label in manifest["tables"]
    }
    return manifest, rows


def values_of(model: Any, row: dict[str, Any]) -> dict[str, Any]:
    """A row of a backup as values for the model as it was."""
    fields = {model._meta.pk.name: row["pk"], **row["fields"]}
    values = {}
    for name, value in fields.items():
        field = model._meta.get_field(name)
        if field.many_to_many:
            assert value == [], f"{name}: the table between has rows of its own"
            continue
        target = field.target_field if field.is_relation else field
        # JSON columns hold what stands there; all others are read from text.
        plain = field.get_internal_type() == "JSONField"
        values[field.attname] = value if plain else target.to_python(value)
    return values


def load(apps: Any, rows: Rows) -> None:
    """Insert the rows as they are, times of creation too."""
    from croc_annotate.operations.backup import _insert

    for label, found in rows.items():
        model = apps.get_model(label)
        model._base_manager.all().delete() if label == "prompts.category" else None
        if found:
            _insert(model, [model(**values_of(model, row)) for row in found])


def differences(apps: Any, rows: Rows) -> list[str]:
    """Every value that is not what it was, and every row that is missing or new."""
    from django.core.exceptions import FieldDoesNotExist

    wrong = []
    for label, found in rows.items():
        model = apps.get_model(label)
        there = model._base_manager.in_bulk([row["pk"] for row in found])
        if model._base_manager.count() != len(found):
            wrong.append(f"{label}: {model._base_manager.count()} rows, {len(found)} before")
        for row in found:
            old = there.get(model._meta.pk.to_python(row["pk"]))
            for name, value in row["fields"].items():
                try:
                    field = model._meta.get_field(name)
                except FieldDoesNotExist:
                    wrong.append(f"{label}.{name}: gone")
                    continue
                if field.many_to_many or (label, name) in MEANT_TO_CHANGE:
                    continue
                now = None if old is None else getattr(old, field.attname)
                then = values_of(model, {"pk": row["pk"], "fields": {name: value}})[field.attname]
                if now != then:
                    wrong.append(f"{label} {row['pk']} {name}: {now!r}, was {then!r}")
    return wrong


def main() -> None:
    django.setup()
    from django.apps import apps as present
    from django.core.management import call_command
    from django.db import connection, transaction
    from django.db.migrations.executor import MigrationExecutor

    from croc_annotate.operations.backup import _reset_sequences
    from croc_annotate.releases.models import Release
    from croc_annotate.releases.sealing import content_sha256

    manifest, rows = read_fixture(sys.argv[1])
    executor = MigrationExecutor(connection)
    applied = {tuple(key) for key in manifest["migrations"]}
    graph = executor.loader.graph
    # The newest of the old migrations of each app.
    old = [
        key
        for key in sorted(applied)
        if key in graph.nodes
        and not any(c.key in applied and c.key[0] == key[0] for c in graph.node_map[key].children)
    ]
    state = executor.migrate(old)
    with transaction.atomic():
        load(state.apps, rows)
    report: dict[str, Any] = {"loaded": sum(map(len, rows.values()))}
    report["before"] = differences(state.apps, rows)
    call_command("migrate", verbosity=0)
    _reset_sequences()
    report["after"] = differences(present, rows)
    report["broken_seals"] = [
        str(release)
        for release in Release.objects.all()
        if content_sha256(release) != release.sha256
    ]
    report["waiting"] = len(MigrationExecutor(connection).migration_plan(graph.leaf_nodes()))
    back = MigrationExecutor(connection)
    back.migrate(old)
    report["back"] = differences(back.loader.project_state(old).apps, rows)
    # Forward again: the code of today works on these rows.
    call_command("migrate", verbosity=0)
    call_command("check_queue", repair=True, verbosity=0, stdout=sys.stderr)
    call_command("agreement", campaign="main", stdout=sys.stderr)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
