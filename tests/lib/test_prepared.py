"""Statements compiled once and prepared by the server; several writes in one round trip."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from croc_annotate.accounts.models import User
from croc_annotate.lib.prepared import Question, answers_of, numbered, padded, prepared, text, whole
from croc_annotate.lib.writebatch import Plus, WriteBatch
from croc_annotate.prompts.models import Category
from tests.factories import make_user

pytestmark = pytest.mark.django_db
on_postgresql = pytest.mark.skipif(
    "connection.vendor != 'postgresql'", reason="SQLite prepares nothing for later"
)


def by_name(*names: str) -> Question[User]:
    values = padded(names)
    query = prepared(
        ("test: by name", len(values)),
        len(values),
        lambda: User.objects.filter(username__in=[text(i) for i in range(len(values))]),
    )
    return Question(query, values)


def by_key(key: int) -> Question[User]:
    return Question(prepared("test: by key", 1, lambda: User.objects.filter(pk=whole(0))), [key])


def test_the_rows_are_those_of_the_queryset():
    first, second = make_user(), make_user()
    assert {u.pk for u in by_name(first.username, second.username).answer()} == {
        first.pk,
        second.pk,
    }
    again = by_key(first.pk).answer()[0]
    for field in User._meta.concrete_fields:
        assert getattr(again, field.attname) == getattr(first, field.attname), field


def test_two_questions_keep_their_answers_apart():
    users = [make_user() for _ in range(3)]
    for _ in range(8):  # beyond the point where the server keeps a plan
        one, two = answers_of(by_key(users[0].pk), by_name(users[1].username, users[2].username))
        assert [u.pk for u in one] == [users[0].pk]
        assert {u.pk for u in two} == {users[1].pk, users[2].pk}
        nobody, one = answers_of(by_key(-1), by_key(users[1].pk))
        assert (nobody, [u.pk for u in one]) == ([], [users[1].pk])


@on_postgresql
def test_the_server_prepares_each_text_once():
    user = make_user()
    for size in (1, 70_000, 5_000_000_000):  # numbers of every width: one statement
        by_key(size).answer()
    by_key(user.pk).answer()
    with connection.cursor() as cursor:
        cursor.execute(
            "select count(*) from pg_prepared_statements where statement like %s",
            ['%FROM "accounts_user" WHERE "accounts_user"."id" = $1%'],
        )
        assert cursor.fetchone() == (1,)


@on_postgresql
def test_one_value_may_stand_in_several_places():
    user, other = make_user(), make_user()
    query = prepared(
        "test: twice",
        2,
        lambda: User.objects.filter(Q(username=text(1)) | Q(pk=whole(0)), username=text(1)),
    )
    assert (query.sql.count("$1"), query.sql.count("$2"), query.sql.count("$3")) == (2, 1, 0)
    assert [u.pk for u in query(0, user.username)] == [user.pk]
    assert [u.pk for u in query(0, other.username)] == [other.pk]


@on_postgresql
def test_what_is_fixed_stands_in_the_statement_where_an_index_needs_it():
    """A partial index of the rows in one state is of no use to a plan for any state."""
    query = prepared(
        "test: fixed", 1, lambda: User.objects.filter(role="it's 100 %", pk=whole(0))[:7]
    )
    assert "'it''s 100 %'" in query.sql
    assert query.sql.endswith("LIMIT 7")
    assert query.sql.count("$") == 1
    assert query(1) == []


@on_postgresql
def test_the_server_plans_a_statement_once():
    user = make_user()
    for _ in range(8):
        batch = WriteBatch()
        batch.update_one(user, theme="dark")
        batch.run()
        by_key(user.pk).answer()
    with connection.cursor() as cursor:
        cursor.execute("select sum(custom_plans), sum(generic_plans) from pg_prepared_statements")
        custom, generic = cursor.fetchone()
    assert custom == 0
    assert generic >= 16


def test_an_instance_is_as_the_queryset_makes_it():
    user = make_user()
    [found] = by_key(user.pk).answer()
    assert found._state.adding is False
    assert found._state.db == connection.alias
    found.theme = "dark"
    found.save(update_fields=["theme"])
    user.refresh_from_db()
    assert user.theme == "dark"
    query = prepared("test: deferred", 1, lambda: User.objects.only("pk").filter(pk=whole(0)))
    [short] = query(user.pk)
    assert short.get_deferred_fields() >= {"theme", "username"}
    assert short.theme == "dark"


@on_postgresql
def test_a_connection_that_the_server_closed_is_seen_without_asking():
    assert connection.is_usable()
    other = connection.copy()
    other.ensure_connection()
    pid = other.connection.info.backend_pid
    with connection.cursor() as cursor:
        cursor.execute("select pg_terminate_backend(%s, 5000)", [pid])
    assert not other.is_usable()
    other.close()


def test_places_are_numbered():
    assert numbered("a = %s and b like '%%x' or c = %s") == "a = $1 and b like '%x' or c = $2"


# --- writing ---------------------------------------------------------------------------------


def test_writes_go_together_and_in_order():
    users = [make_user() for _ in range(2)]
    batch = WriteBatch()
    batch.update(User, [user.pk for user in users], theme="dark", timezone="UTC")
    batch.update(User, [users[0].pk], theme="light")
    batch.insert([Category(slug=f"t{i}", label=str(i), position=i) for i in range(3)])
    batch.update(Category, ["t1", "t2"], position=Plus(10))
    with CaptureQueriesContext(connection) as caught:
        batch.run()
    if connection.vendor == "postgresql":
        assert len(caught) == 1
    themes = dict(User.objects.values_list("pk", "theme"))
    assert [themes[user.pk] for user in users] == ["light", "dark"]
    rows = Category.objects.filter(slug__in=["t0", "t1", "t2"]).order_by("slug")
    assert [row.position for row in rows] == [0, 11, 12]
    batch.run()  # nothing is left to send


def test_writes_to_one_row_become_one_statement():
    user = make_user()
    batch = WriteBatch()
    batch.update_one(user, theme="dark")
    batch.update_one(user, timezone="Europe/Berlin", theme="light")
    with CaptureQueriesContext(connection) as caught:
        batch.run()
    assert len(caught) == 1
    user.refresh_from_db()
    assert (user.theme, user.timezone) == ("light", "Europe/Berlin")


def test_an_error_in_the_middle_leaves_nothing():
    user = make_user()
    batch = WriteBatch()
    batch.update_one(user, theme="dark")
    batch.update(User, [user.pk], role="emperor")  # a constraint refuses it
    batch.update(User, [user.pk], timezone="UTC")
    with pytest.raises(IntegrityError), transaction.atomic():
        batch.run()
    user.refresh_from_db()
    assert (user.theme, user.role) == ("", "annotator")


def test_a_statement_new_in_a_failed_round_trip_can_be_sent_again():
    """What the server never prepared must not count as prepared."""
    user = make_user()

    def write(role: str) -> None:
        batch = WriteBatch()
        batch.update(User, [user.pk], role=role)
        batch.update(User, [user.pk], timezone="Asia/Tokyo", theme="light", display_name="n")
        with transaction.atomic():
            batch.run()

    for _ in range(2):
        with pytest.raises(IntegrityError):
            write("emperor")
    write("reviewer")
    user.refresh_from_db()
    assert (user.role, user.timezone) == ("reviewer", "Asia/Tokyo")


@on_postgresql
def test_behind_a_pooler_nothing_is_kept_on_the_connection():
    """Two requests there may meet different servers: no names, no settings."""
    user = make_user()
    other = connection.copy()
    other.settings_dict = {**connection.settings_dict, "PREPARED_STATEMENTS": False}
    query = prepared("test: pooled", 1, lambda: User.objects.filter(pk=whole(0)))
    try:
        for _ in range(8):
            cursor = other.preparing_cursor()
            cursor.execute(query.sql, [user.pk])
            cursor.execute((query.sql, query.sql), [[user.pk], [user.pk]])
        with other.cursor() as plain:
            plain.execute(
                "select count(*), current_setting('plan_cache_mode') from pg_prepared_statements"
            )
            assert plain.fetchone() == (0, "auto")
    finally:
        other.close()


def test_values_of_every_kind_arrive():
    user = make_user()
    key, now = uuid.uuid4().hex, datetime(2026, 11, 29, 12, 0, 1, 5, tzinfo=UTC)
    batch = WriteBatch()
    batch.update_one(
        user, display_name=f"ü \U0001f44d % %s $1 {key}", shortcuts={"a": [1, None]}, last_login=now
    )
    batch.run()
    user.refresh_from_db()
    assert (user.display_name, user.shortcuts, user.last_login) == (
        f"ü \U0001f44d % %s $1 {key}",
        {"a": [1, None]},
        now,
    )
