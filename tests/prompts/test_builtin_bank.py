"""The bank that comes with the project keeps the rules of a published benchmark."""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict

import pytest

from croc_annotate.prompts.bank import builtin_files, parse_bank
from croc_annotate.prompts.rules import CATEGORIES, PairRow, check_bank, normalised

ROWS = [row for path in builtin_files() for row in parse_bank(path)]
BY_CATEGORY: dict[str, list[PairRow]] = defaultdict(list)
for _row in ROWS:
    BY_CATEGORY[_row.category].append(_row)
# Names of makers, places and people that a prompt must not lean on; a sample of what text-to-image
# models know well, and enough to catch a slip.
NAMES = {
    "nike",
    "adidas",
    "iphone",
    "ipad",
    "google",
    "amazon",
    "coca",
    "cola",
    "pepsi",
    "lego",
    "barbie",
    "disney",
    "pixar",
    "mickey",
    "batman",
    "superman",
    "spiderman",
    "pokemon",
    "toyota",
    "ford",
    "bmw",
    "mercedes",
    "audi",
    "ferrari",
    "tesla",
    "volkswagen",
    "starbucks",
    "mcdonald",
    "ikea",
    "sony",
    "samsung",
    "microsoft",
    "nintendo",
    "playstation",
    "rolex",
    "gucci",
    "prada",
    "chanel",
    "einstein",
    "picasso",
    "gogh",
    "monet",
    "trump",
    "obama",
    "messi",
    "ronaldo",
    "swift",
    "beyonce",
    "elvis",
    "mozart",
    "london",
    "paris",
    "york",
    "tokyo",
    "berlin",
    "rome",
    "eiffel",
    "christmas",
}
NEGATIONS = {"no", "not", "without", "nobody", "none", "never", "nothing", "free"}
WORD = re.compile(r"[\w’'-]+")


def words(text: str) -> list[str]:
    return normalised(text).split()


def changed_spans(row: PairRow) -> list[tuple[list[str], list[str]]]:
    a, b = words(row.prompt), words(row.contrast)
    matcher = difflib.SequenceMatcher(a=a, b=b, autojunk=False)
    return [(a[i:j], b[k:m]) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]


def test_there_are_fifty_pairs_of_each_category_and_no_rule_is_broken() -> None:
    assert {name: len(rows) for name, rows in BY_CATEGORY.items()} == dict.fromkeys(CATEGORIES, 50)
    assert check_bank(ROWS) == []
    assert [row.slug for row in BY_CATEGORY["counting"]] == [f"counting_{i}" for i in range(1, 51)]


def test_no_text_comes_twice_in_the_whole_bank() -> None:
    texts = Counter(normalised(text) for row in ROWS for text in (row.prompt, row.contrast))
    assert [text for text, times in texts.items() if times > 1] == []


def test_each_text_has_five_to_twenty_five_words() -> None:
    lengths = [len(text.split()) for row in ROWS for text in (row.prompt, row.contrast)]
    assert min(lengths) >= 5
    assert max(lengths) <= 25
    assert len(set(lengths)) >= 10


def test_one_small_stretch_of_words_differs() -> None:
    for row in ROWS:
        spans = changed_spans(row)
        first, last = spans[0], spans[-1]
        assert len(spans) <= 2, row.slug
        assert first
        assert last
        for removed, added in spans:
            assert len(removed) <= 6, row.slug
            assert len(added) <= 6, row.slug
        kept = 1 - sum(len(removed) for removed, _ in spans) / len(words(row.prompt))
        assert kept >= 0.4, (row.slug, kept)


@pytest.mark.parametrize("category", CATEGORIES)
def test_subjects_topics_and_properties_vary(category: str) -> None:
    rows = BY_CATEGORY[category]
    assert all(row.property and row.topic and row.entity for row in rows)
    assert len({row.entity for row in rows}) >= 35
    assert len({row.topic for row in rows}) >= 20
    assert len({row.property for row in rows}) >= 6
    assert Counter(row.topic for row in rows).most_common(1)[0][1] <= 8


@pytest.mark.parametrize("category", CATEGORIES)
def test_wording_varies(category: str) -> None:
    rows = BY_CATEGORY[category]
    openings = Counter(" ".join(words(row.prompt)[:2]) for row in rows)
    vocabulary = {word for row in rows for word in words(row.prompt)}
    sentences = sum(row.prompt.endswith(".") for row in rows)
    assert len(openings) >= 30
    assert openings.most_common(1)[0][1] <= 6
    assert len(vocabulary) >= 190
    assert 0.15 <= sentences / 50 <= 0.85


def test_no_brand_or_persons_name() -> None:
    for row in ROWS:
        for text in (row.prompt, row.contrast, row.alt_contrast):
            assert not NAMES & set(words(text)), row.slug
            # A capital inside a sentence would be a name (the letters T, V, L describe shapes).
            inner = [w for w in WORD.findall(text)[1:] if w[0].isupper() and len(w) > 1]
            assert inner == [], row.slug


def test_numbers_differ_in_counting_and_nothing_else_is_counted_differently() -> None:
    numbers = {"one", "a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}
    numbers |= {"twelve", "single"}
    for row in BY_CATEGORY["counting"]:
        (removed, added), *rest = changed_spans(row)
        assert numbers & set(removed), row.slug
        assert numbers & set(added), row.slug
        for pair in rest:  # the verb or the noun follows its number
            assert all(len(words_) <= 2 for words_ in pair), row.slug


def test_negation_denies_in_the_contrast_and_never_in_its_rewording() -> None:
    for row in BY_CATEGORY["negation"]:
        assert NEGATIONS & set(words(row.contrast)), row.slug
        assert not NEGATIONS & set(words(row.prompt)), row.slug
        assert not NEGATIONS & set(words(row.alt_contrast)), row.slug


def test_the_rewording_does_not_name_what_is_absent() -> None:
    for row in BY_CATEGORY["negation"]:
        for noun in words(row.entity):
            stem = noun.removesuffix("s") if len(noun) > 3 else noun
            named = [word for word in words(row.alt_contrast) if word.startswith(stem)]
            assert named == [], (row.slug, named)
