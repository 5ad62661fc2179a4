"""What all tests share: a database of their own, quick hashing, files in a folder of their own."""

from __future__ import annotations

import gc
import importlib
import itertools
import os
import shutil
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine draws slowly; that is no finding. What is drawn stays the same in each run.
settings.register_profile(
    "here", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("here")


def pytest_configure() -> None:
    """A part of the cache for each test, before anything is kept there."""
    from django.conf import settings

    from tests.cache import settings_of_tests

    settings.CACHES = settings_of_tests(settings.CACHES)
    if os.environ.get("TEST_ORDER") == "any":
        from tests.any_order import shuffle_rows

        shuffle_rows()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What is cached from now on belongs to this test."""
    from tests.cache import begin

    begin(item.nodeid)


def pytest_sessionfinish() -> None:
    """Leave nothing in a Redis that outlives the run."""
    from tests.cache import forget_run

    forget_run()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix) -> None:
    """Two runs on one server must not share a database: its name holds the run."""
    from django.conf import settings
    from django.db import connections

    for alias in settings.DATABASES:
        # A thread of the live server that a browser keeps open must not keep the database open.
        connections[alias].settings_dict["CONN_MAX_AGE"] = 0
        test = connections[alias].settings_dict.setdefault("TEST", {})
        worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        run = os.environ.get("TEST_RUN", "0")
        if settings.ON_SQLITE:
            test["NAME"] = f"/tmp/croc-test-{run}{worker}.sqlite3"
        else:
            test["NAME"] = f"test_croc_{run}{worker}"


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker) -> Iterator[None]:
    """End connections that a test's thread may have left: they would keep the database alive."""
    yield
    from django.db import connection

    if connection.vendor == "postgresql":
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid()"
            )


def _empties_tables(item: pytest.Item) -> bool:
    """Whether a test has real commits: its tables are emptied afterwards, all of them."""
    marker = item.get_closest_marker("django_db")
    names = getattr(item, "fixturenames", [])
    return bool(marker and marker.kwargs.get("transaction")) or bool(
        {"transactional_db", "live_server"} & set(names)
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Put the categories, which a migration made, back for the tests that follow."""
    yield
    if nextitem is not None and _empties_tables(item):
        from django.apps import apps
        from pytest_django.plugin import blocking_manager_key

        migration = importlib.import_module("croc_annotate.prompts.migrations.0002_categories")
        with item.config.stash[blocking_manager_key].unblock():
            migration.add_categories(apps, None)


def _sequences_sql() -> str:
    """One statement that lets each table's numbers begin after those it holds."""
    from django.apps import apps
    from django.db import connection
    from django.db.models import AutoField

    quote = connection.ops.quote_name
    parts = [
        f"select setval(pg_get_serial_sequence('{quote(model._meta.db_table)}', '{pk.column}'), "
        f"(select coalesce(max({quote(pk.column)}), 0) + 1 from {quote(model._meta.db_table)}), false)"
        for model in apps.get_models()
        if model._meta.managed and isinstance(pk := model._meta.pk, AutoField)
    ]
    return " union all ".join(parts)


@pytest.fixture(autouse=True)
def same_in_any_order(request: pytest.FixtureRequest) -> None:
    """Number rows and colour images by the test, not by what ran before it.

    Queues and samples are seeded with numbers of rows, and fake metrics with hashes of images: a
    test must see the same ones alone and among others. TEST_ORDER=any leaves them as they come,
    to look for what only some of them show (CONTRIBUTING.md), and mixes rows that have no order.
    """
    if os.environ.get("TEST_ORDER") == "any":
        return
    from tests import factories

    # Far apart, so that rows which a module's tests share do not meet those of one test.
    factories._count = itertools.count(zlib.crc32(request.node.nodeid.encode()) % 60_000 * 1_000)
    marked = request.node.get_closest_marker("django_db")
    if not marked and not {"db", "transactional_db", "live_server"} & set(request.fixturenames):
        return
    from django.db import connection

    if connection.vendor != "postgresql":
        return
    request.getfixturevalue("django_db_setup")
    blocker = request.getfixturevalue("django_db_blocker")
    with blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(_sequences_sql())


@pytest.fixture(scope="session", autouse=True)
def small_campaigns_are_quick() -> None:
    """Numbers that took long are not renewed while a visitor waits: on a busy machine as on any."""
    from croc_annotate.agreement import snapshots

    snapshots.QUICK_SECONDS = 2.5  # tests of slow ones say 3


@pytest.fixture(autouse=True)
def its_own_litter(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test is allowed to leave open is cleared away in that test, not in whichever comes later."""
    yield
    ignored = [str(mark.args[0]) for mark in request.node.iter_markers("filterwarnings")]
    if any("ResourceWarning" in words for words in ignored):
        gc.collect()


@pytest.fixture(autouse=True)
def nothing_kept_by_number() -> Iterator[None]:
    """What a process remembers by the number of a row is of no use to the next test's row 1."""
    yield
    if benchmark := sys.modules.get("croc_annotate.benchmark.tasks"):
        benchmark.forget_loaded()
    if generation := sys.modules.get("generation.tasks"):
        generation._unusable.clear()


@pytest.fixture(autouse=True)
def a_language_of_its_own() -> Iterator[None]:
    """A page that was asked for in German leaves German on: the next request would choose anew."""
    yield
    from django.utils import translation

    translation.deactivate()


@pytest.fixture(autouse=True)
def no_request_under_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the live server end what a closed page asked for, before the tables are emptied.

    Emptying them locks them all: a request that holds some and waits for others ends in a deadlock.
    """
    if "live_server" not in request.fixturenames:
        yield
        return
    request.getfixturevalue("transactional_db")  # so that this ends before it does
    yield
    from django.db import connection

    if connection.vendor != "postgresql":
        return
    end = time.monotonic() + 10
    while time.monotonic() < end and _others_at_the_database():
        time.sleep(0.02)


def _others_at_the_database() -> int:
    """Connections but for this thread's own; the live server has one for each request."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "select count(*) from pg_stat_activity where datname = current_database() "
            "and pid <> pg_backend_pid() and backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])


@pytest.fixture(autouse=True)
def quick_and_separate(settings, tmp_path: Path) -> None:
    """A cheap password hash, files in the test's folder, tasks in this process, no lock-out or limit."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.CELERY_TASK_ALWAYS_EAGER = True
    settings.AXES_ENABLED = False
    settings.RATE_LIMIT_SIGN_IN = settings.RATE_LIMIT_VISITORS = settings.RATE_LIMIT_PEOPLE = 0
    settings.RATE_LIMIT_TOKENS = 0
    from croc_annotate.celery import app

    app.conf.task_always_eager = True


def find_chromium() -> str | None:
    """Debian's Chromium, the one named by CHROMIUM, or Playwright's own; None without any."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if found:
        return found
    cache = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path.home() / ".cache/ms-playwright"))
    return next((str(p) for p in cache.glob("chromium-*/chrome-linux*/chrome")), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip browser tests, with the reason, where there is no Chromium."""
    if find_chromium() is None:
        skip = pytest.mark.skip(reason="no Chromium: install Debian's chromium, or set CHROMIUM")
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict) -> dict:
    """Debian's Chromium where it is, else Playwright's own, with no traffic of its own."""
    chromium = find_chromium()
    return {
        **browser_type_launch_args,
        **({"executable_path": chromium} if chromium else {}),
        "args": [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ],
    }


@pytest.fixture
def context(context):
    """What a page shows late on a busy machine is no finding: a minute for each thing waited for."""
    from playwright.sync_api import expect

    expect.set_options(timeout=60_000)
    context.set_default_timeout(60_000)
    return context


def real_data_dir() -> Path | None:
    """The folder with real images and golden results, where there is one."""
    given = os.environ.get("REAL_DATA_DIR")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    return folder if (folder / "tifa_real").is_dir() else None


@pytest.fixture
def real_data() -> Path:
    """Real images, ratings and results; skips where they are not at hand."""
    folder = real_data_dir()
    if folder is None:
        pytest.skip("no real data: set REAL_DATA_DIR to a folder with tifa_real/ and golden/")
    return folder
