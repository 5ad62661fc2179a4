"""A campaign of any size, written by the database itself (PostgreSQL): seconds, not hours.

Truths, skills and difficulties are fixed by hashes of the row numbers, so that two
runs make the same campaign.
"""

from __future__ import annotations

from datetime import UTC, datetime

GENERATORS = {
    "FLUX_1_dev": "FLUX.1-dev",
    "stable_diffusion_3_5_large": "Stable Diffusion 3.5 Large",
}
START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)

_CANDIDATES = """
INSERT INTO candidates_candidate
  (pair_id, side, generator_id, seed, state, key, image, display, preview, sha256, width, height,
   source_name, provenance, error, claimed_by, attempts, created_at, rendered_at{more})
SELECT p.id, CASE WHEN s = 0 THEN 'prompt' WHEN p.category_id = 'negation' THEN 'alt_contrast'
       ELSE 'contrast' END,
       g.id, k, 'rendered', md5(p.id || '-' || s || '-' || g.id || '-' || k),
       'o' || picture || '.png', 'd' || picture || '.png', 'p' || picture || '.png',
       encode(sha256((p.id || '/' || s || g.id || '/' || k)::bytea), 'hex'),
       1024, 1024, '', '{{}}', '', '', 0, now(), now(){more_values}
FROM prompts_contrastpair p
CROSS JOIN generate_series(0, 1) s
CROSS JOIN candidates_generator g
CROSS JOIN generate_series(1, {seeds}) k
CROSS JOIN LATERAL (SELECT (p.id * 5 + s * 3 + k) % {pictures} AS picture) files
WHERE p.bank = 'bench'
"""
# A hundredth or less is gold: one image of every fourth pair, side and generator. People come to
# images in an order that mixes all pairs.
_ITEMS = """
INSERT INTO annotation_item
  (campaign_id, candidate_id, pair_id, text_role, purpose, known_verdict, explanation, is_quiz,
   key, "group", position, needed, leased, reference, reference_open, opened_at, closed_at,
   closed_by_review, created_at{more})
SELECT {campaign}, id, pair_id, 'own', CASE WHEN gold THEN 'gold' ELSE 'work' END,
       CASE WHEN NOT gold THEN '' WHEN truth THEN 'accept' ELSE 'reject' END, '', false,
       md5('i' || id), md5(pair_id || side), position,
       CASE WHEN done OR gold THEN 0 ELSE {per_item} END, 0, false, false,
       now(), CASE WHEN done AND NOT gold THEN now() END, false, now(){more_values}
FROM (
  SELECT c.*, c.seed = 1 AND c.pair_id % 4 = 0 AS gold, (c.id * 7919) % {total} AS position,
         (c.id * 7919) % {total} < {done} * {total} AS done,
         u(c.id + 5000000000) < 0.1 + 0.4 * u(c.pair_id + 900000000) AS truth
  FROM candidates_candidate c
) x
"""
# Truth: 30 % on average, by the difficulty of the pair. People: sensitivity .88 … .97,
# specificity .80 … .97; but 5 accepts nearly everything, 11 guesses fast, 17 tires, and 24 copies
# from 23. hashint8 gives 32 well-mixed bits.
_JUDGEMENTS = """
INSERT INTO annotation_judgement
  (campaign_id, item_id, annotator_id, verdict, reason, remark, active_ms, mode, purpose, source,
   surplus, guideline_version, client_key, answered_at, created_at{more})
SELECT {campaign}, item, people[1 + rater], CASE WHEN u(item * 100 + k + 3) < 0.02 THEN 'unsure'
         WHEN u(item * 100 + CASE WHEN rater IN (23, 24) THEN 99 ELSE k + 7 END) < CASE
              WHEN rater = 5 THEN 0.85 WHEN rater = 11 THEN 0.5
              WHEN rater = 17 AND share > 0.6 THEN 0.45
              WHEN truth THEN 0.88 + 0.09 * u(rater) ELSE 0.20 - 0.17 * u(rater + 1000) END
         THEN 'accept' ELSE 'reject' END,
       '', CASE WHEN u(item * 100 + k + 17) < 0.003 THEN 'One of the apples is cut off at the edge.'
           ELSE '' END,
       CASE WHEN rater = 11 THEN 350 ELSE 1500 END
         + (6000 * CASE WHEN rater = 11 THEN 0.1 ELSE 1 END * u(item * 100 + k + 11) ^ 2)::int,
       CASE WHEN rater % 4 = 0 THEN 'grid' ELSE 'focus' END, purpose, 'web', false,
       CASE WHEN share < 0.3 THEN 'v1' ELSE 'v2' END, gen_random_uuid(), at, at{more_values}
FROM (
  SELECT i.id AS item, k, i.purpose, i.position::float / {total} AS share,
         ((u(i.id * 31) * 4096)::int + k * (1 + (u(i.id * 17 + 1) * 4096)::int % ({people_n} / 3)))
           % {people_n} AS rater,
         CASE WHEN i.purpose = 'gold' THEN i.known_verdict = 'accept' ELSE
           u(i.candidate_id + 5000000000) < 0.1 + 0.4 * u(i.pair_id + 900000000) END AS truth,
         timestamptz '{start}' + i.position::float / {total} * interval '8 weeks'
           + k * interval '3 minutes' AS at,
         (SELECT array_agg(id ORDER BY id) FROM accounts_user WHERE username LIKE 'bench%%')
           AS people
  FROM annotation_item i
  CROSS JOIN LATERAL generate_series(
    0, CASE WHEN i.purpose = 'gold' THEN 11 ELSE {per_item} - 1 END) k
  WHERE i.campaign_id = {campaign} AND i.position < {done} * {total}
) x
ORDER BY at
ON CONFLICT DO NOTHING
"""
_UNIFORM = """
CREATE OR REPLACE FUNCTION u(n bigint) RETURNS double precision IMMUTABLE LANGUAGE sql AS
$$ SELECT (hashint8extended(n, 42) & 4294967295)::double precision / 4294967296.0 $$
"""


# The second person has a name as long as people have.
LONG_NAME = "Wolfeschlegelsteinhausenbergerdorff-Oyelaran, Maximiliane"


def make_campaign(
    *,
    pairs: int = 400,
    seeds: int = 50,
    people: int = 60,
    per_item: int = 3,
    done: float = 1.0,
    start: datetime = START,
    pictures: int = 1,
):
    """Fill an empty PostgreSQL database; returns the campaign. 400 pairs are 80,000 items.

    ``done`` is the share of items that are judged, over eight weeks from ``start``. The images are
    called o0.png, d0.png, p0.png … up to ``pictures``; none is written.
    """
    from django.contrib.auth import get_user_model
    from django.db import connection

    from croc_annotate.annotation.models import Campaign, Item, Judgement
    from croc_annotate.candidates.models import Candidate, Generator
    from croc_annotate.prompts.models import Category, ContrastPair

    users = get_user_model()
    users.objects.bulk_create(
        users(
            username=f"bench{k:03}", password="!", role="annotator",
            display_name=LONG_NAME if k == 1 else "",
        )
        for k in range(people)
    )  # fmt: skip
    Generator.objects.bulk_create(
        Generator(slug=slug, label=label) for slug, label in GENERATORS.items()
    )
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
        "per_item": per_item,
        "done": done,
        "total": 4 * pairs * seeds,
        "start": start.isoformat(),
        "pictures": pictures,
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
