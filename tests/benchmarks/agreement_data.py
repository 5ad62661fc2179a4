"""A campaign of any size, written by the database itself (PostgreSQL): seconds, not hours.

Truths, skills and difficulties are fixed by hashes of the row numbers, so that two
runs make the same campaign.
"""

from __future__ import annotations

from datetime import UTC, datetime

GENERATORS = ("FLUX_1_dev", "stable_diffusion_3_5_large")
START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)

_CANDIDATES = """
INSERT INTO candidates_candidate
  (pair_id, side, generator_id, seed, state, key, image, display, preview, sha256, width, height,
   source_name, provenance, error, claimed_by, attempts, created_at, rendered_at{more})
SELECT p.id, CASE WHEN s = 0 THEN 'prompt' WHEN p.category_id = 'negation' THEN 'alt_contrast'
       ELSE 'contrast' END,
       g.id, k, 'rendered', md5(p.id || '-' || s || '-' || g.id || '-' || k),
       'o.png', 'd.png', 'p.webp', encode(sha256((p.id || '/' || s || g.id || '/' || k)::bytea), 'hex'),
       1024, 1024, '', '{{}}', '', '', 0, now(), now(){more_values}
FROM prompts_contrastpair p
CROSS JOIN generate_series(0, 1) s
CROSS JOIN candidates_generator g
CROSS JOIN generate_series(1, {seeds}) k
WHERE p.bank = 'bench'
"""
_ITEMS = """
INSERT INTO annotation_item
  (campaign_id, candidate_id, pair_id, text_role, purpose, known_verdict, explanation, is_quiz,
   key, "group", position, needed, leased, reference, reference_open, opened_at, closed_at,
   closed_by_review, created_at{more})
SELECT {campaign}, c.id, c.pair_id, 'own', 'work', '', '', false, md5('i' || c.id),
       md5(c.pair_id || c.side), c.id, 0, 0, false, false, now(), now(), false, now(){more_values}
FROM candidates_candidate c
"""
# Truth: 30 % on average, by the difficulty of the pair. People: sensitivity .88 … .97,
# specificity .80 … .97. hashint8 gives 32 well-mixed bits.
_JUDGEMENTS = """
INSERT INTO annotation_judgement
  (campaign_id, item_id, annotator_id, verdict, reason, remark, active_ms, mode, purpose, source,
   surplus, guideline_version, client_key, answered_at, created_at{more})
SELECT {campaign}, item, people[1 + rater], CASE WHEN u(item * 100 + k + 3) < 0.02 THEN 'unsure'
         WHEN u(item * 100 + k + 7) < CASE WHEN truth THEN 0.88 + 0.09 * u(rater)
              ELSE 0.20 - 0.17 * u(rater + 1000) END THEN 'accept' ELSE 'reject' END,
       '', '', 1500 + (6000 * u(item * 100 + k + 11) ^ 2)::int, 'focus', 'work', 'web', false,
       CASE WHEN item % 3 = 0 THEN 'v1' ELSE 'v2' END, gen_random_uuid(), at, at{more_values}
FROM (
  SELECT i.id AS item, k, (i.id * 7 + k * 13 + (u(i.id) * 60)::int + k * (i.id % 5)) % {people_n}
           AS rater,
         u(i.id + 5000000000) < 0.1 + 0.4 * u(i.pair_id + 900000000) AS truth,
         timestamptz '2026-03-02 08:00+00' + (i.position % 3000000) * interval '20 seconds'
           + k * interval '3 minutes' AS at,
         (SELECT array_agg(id ORDER BY id) FROM accounts_user WHERE username LIKE 'bench%%')
           AS people
  FROM annotation_item i CROSS JOIN generate_series(0, {per_item_less_1}) k
  WHERE i.campaign_id = {campaign}
) x
ON CONFLICT DO NOTHING
"""
_UNIFORM = """
CREATE OR REPLACE FUNCTION u(n bigint) RETURNS double precision IMMUTABLE LANGUAGE sql AS
$$ SELECT (hashint8extended(n, 42) & 4294967295)::double precision / 4294967296.0 $$
"""


def make_campaign(*, pairs: int = 400, seeds: int = 50, people: int = 60, per_item: int = 3):
    """Fill an empty PostgreSQL database; returns the campaign. 400 pairs are 80,000 items."""
    from django.contrib.auth import get_user_model
    from django.db import connection

    from croc_annotate.annotation.models import Campaign, Item, Judgement
    from croc_annotate.candidates.models import Candidate, Generator
    from croc_annotate.prompts.models import Category, ContrastPair

    users = get_user_model()
    users.objects.bulk_create(
        users(username=f"bench{k:03}", password="!", role="annotator") for k in range(people)
    )
    Generator.objects.bulk_create(Generator(slug=slug, label=slug) for slug in GENERATORS)
    categories = list(Category.objects.values_list("slug", flat=True))
    ContrastPair.objects.bulk_create(
        ContrastPair(
            slug=f"{category}_{n}",
            category_id=category,
            prompt=f"{n} {category} apples on a plate",
            contrast=f"{n + 1} {category} apples on a plate",
            alt_contrast="an empty plate" if category == "negation" else "",
            bank="bench",
        )
        for category in categories
        for n in range(1, pairs // len(categories) + 1)
    )
    campaign = Campaign.objects.create(
        slug="bench", title="Benchmark", state="open", min_judgements=per_item,
        max_judgements=max(5, per_item), is_simulated=True,
    )  # fmt: skip
    values = {
        "seeds": seeds,
        "campaign": campaign.pk,
        "people_n": people,
        "per_item_less_1": per_item - 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(_UNIFORM)
        for model, statement in (
            (Candidate, _CANDIDATES),
            (Item, _ITEMS),
            (Judgement, _JUDGEMENTS),
        ):
            more, more_values = _other_columns(model, statement)
            filled = statement.format(more=more, more_values=more_values, **values)
            cursor.execute(filled.replace("%%", "%"))
        cursor.execute("ANALYZE")
    return campaign


def _other_columns(model, statement: str) -> tuple[str, str]:
    """Columns that the statement does not name and that must have a value: their defaults."""
    named = statement.split("(", 1)[1].split(")", 1)[0].replace('"', "").replace("{more}", "")
    listed = {name.strip() for name in named.split(",")}
    names, values = [], []
    for field in model._meta.concrete_fields:
        if field.null or field.primary_key or field.column in listed:
            continue
        default = field.get_default()
        names.append(f', "{field.column}"')
        values.append(f", {default!r}".lower() if isinstance(default, bool) else f", {default!r}")
    return "".join(names), "".join(values)
