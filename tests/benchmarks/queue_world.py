"""Run by bench_queue in a process of its own: a campaign of the wanted size, people signed in.

Rows are made by the database itself (generate_series): 800,000 candidates in half a minute.
"""

from __future__ import annotations

import argparse
import json
import time

import django

django.setup()

from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import call_command
from django.db import connection

PAIRS = """
insert into prompts_contrastpair (slug, version, category_id, prompt, contrast, alt_contrast,
    property, topic, entity, bank, active, retired_reason, created_at)
select 'counting_' || i, 1, 'counting', i || ' red apples on a plate', i || ' green apples on a plate',
    '', '', '', '', 'bench', true, '', now()
from generate_series(1, %s) i
"""
CANDIDATES = """
insert into candidates_candidate (pair_id, side, generator_id, seed, state, key, image, display,
    preview, sha256, width, height, source_name, provenance, error, claimed_by, attempts, created_at)
select p.id, s.side, %s, n, 'rendered', md5(p.id || s.side || n), 'o', 'd', 'p',
    md5(p.id || s.side || n) || md5(n || s.side), 1024, 1024, '', '{}', '', '', 0, now()
from prompts_contrastpair p, (values ('prompt'), ('contrast')) s(side), generate_series(1, %s) n
"""
ITEMS = """
insert into annotation_item (campaign_id, candidate_id, pair_id, text_role, purpose, known_verdict,
    explanation, is_quiz, key, "group", position, needed, leased, extra, reference, reference_open,
    opened_at, closed_by_review, created_at)
select %s, c.id, c.pair_id, 'own', 'work', '', '', false, md5('item' || c.id),
    encode(sha256((c.pair_id || c.side)::bytea), 'hex'),
    row_number() over (order by md5(c.seed || ':' || c.side || c.pair_id)), 3, 0, 0, false, false,
    now(), false, now()
from candidates_candidate c
"""
JUDGEMENTS = """
insert into annotation_judgement (campaign_id, item_id, annotator_id, verdict, reason, remark,
    active_ms, mode, purpose, source, surplus, guideline_version, client_key, answered_at, created_at)
select %(campaign)s, i.id, %(first)s + (i.position * 3 + k) %% %(people)s,
    case when (i.position + k) %% 3 = 0 then 'accept' else 'reject' end, '', '', 3000, 'focus', 'work',
    'web', false, '', gen_random_uuid(), now(), now()
from annotation_item i, generate_series(0, 2) k
where i.campaign_id = %(campaign)s and i.position <= %(items)s
"""
# Every answer has the lease under which it was given.
LEASES = """
insert into annotation_assignment (id, item_id, annotator_id, campaign_id, purpose, state,
    skip_reason, remark, created_at, expires_at, ended_at)
select gen_random_uuid(), j.item_id, j.annotator_id, j.campaign_id, 'work', 'answered', '', '',
    now(), now() + interval '10 minutes', now()
from annotation_judgement j
"""
CLOSE = """
update annotation_item set needed = 0, closed_at = now()
where campaign_id = %s and position <= %s
"""


def make_world(candidates: int, judgements: int, people: int, mode: str) -> dict[str, object]:
    """Everything that a load run needs; returns the campaign's slug and the session keys."""
    from croc_annotate.annotation.services import create_campaign
    from croc_annotate.candidates.models import Generator

    call_command("migrate", verbosity=0)
    User = get_user_model()  # noqa: N806
    done = User.objects.bulk_create(User(username=f"done{i}", password="!") for i in range(60))
    users = User.objects.bulk_create(User(username=f"load{i}", password="!") for i in range(people))
    generator = Generator.objects.create(slug="bench", label="Bench", licence="none")
    campaign = create_campaign(slug="bench", title="Bench", state="open", mode=mode, distance=20)
    pairs = max(candidates // 200, 40)
    with connection.cursor() as cursor:
        cursor.execute(PAIRS, [pairs])
        cursor.execute(CANDIDATES, [generator.pk, max(candidates // pairs // 2, 1)])
        cursor.execute(ITEMS, [campaign.pk])
        items = judgements // 3
        values = {"campaign": campaign.pk, "items": items, "first": done[0].pk, "people": 60}
        cursor.execute(JUDGEMENTS, values)
        cursor.execute(LEASES)
        cursor.execute(CLOSE, [campaign.pk, items])
        cursor.execute("vacuum analyze")
        cursor.execute("select count(*) from annotation_item")
        [made] = cursor.fetchone()
    return {"slug": campaign.slug, "items": made, "sessions": [sign_in(user) for user in users]}


def sign_in(user: object) -> str:
    """A session in the database, as a log-in makes it."""
    store = SessionStore()
    store[SESSION_KEY] = str(user.pk)
    store["_auth_user_backend"] = "django.contrib.auth.backends.ModelBackend"
    store["_auth_user_hash"] = user.get_session_auth_hash()
    store.create()
    return str(store.session_key)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--candidates", type=int, default=80_000)
    parser.add_argument("--judgements", type=int, default=50_000)
    parser.add_argument("--people", type=int, default=64)
    parser.add_argument("--mode", default="focus")
    given = parser.parse_args()
    start = time.monotonic()
    world = make_world(given.candidates, given.judgements, given.people, given.mode)
    print(json.dumps({**world, "seconds": time.monotonic() - start}))


if __name__ == "__main__":
    main()
