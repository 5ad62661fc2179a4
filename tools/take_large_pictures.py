"""Pictures of the pages with 80,000 candidates and 240,000 judgements (`tools/take_large_pictures.py`).

Fills a PostgreSQL database of its own, as the agreement benchmark does, with small drawn images,
and takes every page in light and dark at 360 and 1280 px into .local/pictures-large/. With
``--keep NAME`` the database stays and is used again; with ``--only PAGE`` some pages are taken.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import take_pictures as small
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, sync_playwright

if TYPE_CHECKING:
    import subprocess

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / ".local" / "pictures-large"
SERVER = os.environ.get("TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
PICTURES = 48
ADMIN = ("large-admin", "only for these pictures")
PAGES = {
    "overview": "/agreement/",
    "agreement": "/agreement/report/",
    "annotators": "/agreement/annotators/",
    "person": "/agreement/annotators/{person}/",
    "effect": "/agreement/annotators/{person}/set-aside/?act=set_aside&reason=tired",
    "rules": "/agreement/rules/",
    "review": "/review/",
    "bulk": "/review/bulk/?kind=disputed&category=counting",
    "images": "/agreement/images/?state=disputed",
    "log": "/agreement/log/",
    "browse": "/images/",
    "candidate": "/images/{candidate}/",
    "prompts": "/prompts/",
    "pair": "/prompts/p/counting_7/",
}


def environment(database: str, media: Path) -> dict[str, str]:
    """What the site reads its settings from."""
    return {
        "DATABASE_URL": f"{SERVER.rsplit('/', 1)[0]}/{database}",
        "MEDIA_ROOT": str(media),
        "DJANGO_SETTINGS_MODULE": "croc_annotate.settings",
        "SECRET_KEY": "only for pictures on this machine 0123456789",
        "ALLOWED_HOSTS": "127.0.0.1,localhost",
        "HTTPS": "0",
        "REDIS_URL": "",
        "DEBUG": "0",
        "LOG_LEVEL": "ERROR",
    }


def draw_images(media: Path) -> None:
    """A few shapes that the candidates share: the pages show as many files as there are rows."""
    media.mkdir(parents=True, exist_ok=True)
    for k in range(PICTURES):
        picture = Image.new("RGB", (512, 512), f"hsl({k * 37 % 360}, 35%, {82 - k % 3 * 8}%)")
        pencil = ImageDraw.Draw(picture)
        for n in range(1 + k % 5):
            x, y, size = 60 + n * 85, 120 + (k * 53 + n * 97) % 240, 50 + (k + n) % 4 * 14
            colour = f"hsl({(k * 61 + n * 20) % 360}, 60%, 45%)"
            (pencil.ellipse if k % 2 else pencil.rectangle)((x, y, x + size, y + size), fill=colour)
        for kind, width in (("o", 512), ("d", 512), ("p", 320)):
            picture.resize((width, width)).save(media / f"{kind}{k}.png")


def fill() -> None:
    """The campaign of the benchmark, nine tenths judged by today, with some reviewing done."""
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    from croc_annotate.agreement.statistics import compute_statistics
    from tests.benchmarks.agreement_data import make_campaign

    call_command("migrate", verbosity=0)
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(weeks=7.2)
    campaign = make_campaign(done=0.9, start=start, pictures=PICTURES)
    admin = get_user_model().objects.create_user(ADMIN[0], password=ADMIN[1], role="admin")
    compute_statistics(campaign=campaign)
    review(campaign, admin)
    compute_statistics(campaign=campaign)


def review(campaign: Any, admin: Any) -> None:
    """Decisions, a reveal, items sent back and judgements set aside."""
    from croc_annotate.agreement import reviewing
    from croc_annotate.agreement.review_queue import review_queue
    from croc_annotate.annotation.services import set_aside_judgements

    queue = review_queue(campaign, admin, {"category": "shapes"}).select_related("item")[:40]
    items = [row.item for row in queue]
    reviewing.reveal(item=items[0], actor=admin)
    for k, item in enumerate(items[:30]):
        reviewing.adjudicate(
            item=item, reviewer=admin, verdict="accept" if k % 3 else "reject", reason="clear",
            note="The third shape lies under the second one." if k == 4 else "", blind=bool(k),
        )  # fmt: skip
    reviewing.send_back(
        campaign=campaign, item_ids=[item.pk for item in items[30:]], actor=admin, extra=2, note=""
    )
    guesser = campaign.judgements.get_queryset().filter(annotator__username="bench011").first()
    set_aside_judgements(
        campaign=campaign, annotator=guesser.annotator, actor=admin, reason="guesses",
        since=guesser.created_at, until=guesser.created_at + timedelta(days=5),
    )  # fmt: skip


def places() -> dict[str, str]:
    """The parts of addresses that depend on the data."""
    from croc_annotate.annotation.models import Judgement
    from croc_annotate.candidates.models import Candidate

    person = Judgement.objects.filter(annotator__username="bench017").first()
    candidate = Candidate.objects.filter(pair__slug="counting_7").first()
    if person is None or candidate is None:
        raise SystemExit("The database is empty: drop it, or use another name")
    return {"person": str(person.annotator_id), "candidate": candidate.key}


def take(browser: Browser, url: str, pages: dict[str, str]) -> None:
    """Each page in each look."""
    small.OUT = OUT
    state = small.sign_in(browser, url, ADMIN)
    for look in small.LOOKS:
        context = small.context_of(browser, look, state)
        page = context.new_page()
        page.set_default_timeout(120_000)
        for name, path in pages.items():
            page.goto(url + path)
            page.evaluate("document.querySelectorAll('img').forEach((i) => (i.loading = 'eager'))")
            small.shoot(page, name, look)
        context.close()


def main() -> None:
    """Fill, serve, take, tidy up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", metavar="NAME", help="keep this database and use it again")
    parser.add_argument("--only", nargs="+", choices=sorted(PAGES), metavar="PAGE")
    arguments = parser.parse_args()
    name = arguments.keep or f"pictures_large_{os.getpid()}"
    sys.path.insert(0, str(ROOT))
    OUT.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        media = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        draw_images(media)
        admin = stack.enter_context(psycopg.connect(SERVER, autocommit=True))
        known = admin.execute("select 1 from pg_database where datname = %s", [name]).fetchone()
        os.environ.update(environment(name, media))
        if not known:
            admin.execute(f'create database "{name}"')
        if not arguments.keep:
            stack.callback(admin.execute, f'drop database "{name}" with (force)')
        if known:
            import django

            django.setup()
        else:
            fill()
        pages = {page: path.format(**places()) for page, path in PAGES.items()}
        server, url = small.serve()
        stack.callback(stop, server)
        play = stack.enter_context(sync_playwright())
        browser = play.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--no-first-run"],
        )
        take(browser, url, {n: p for n, p in pages.items() if n in (arguments.only or pages)})
        browser.close()
    print(f"{len(list(OUT.glob('*.png')))} pictures in {OUT.relative_to(ROOT)}")


def stop(server: subprocess.Popen[bytes]) -> None:
    """End the site."""
    server.terminate()
    server.wait()


if __name__ == "__main__":
    main()
