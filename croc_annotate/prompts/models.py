"""Categories and contrast pairs."""

from __future__ import annotations

import builtins
from functools import reduce
from operator import or_

from django.db import models
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

NEGATION = "negation"
# The labels that come with the project, for the translators; the rows hold them in English.
LABELS = (
    gettext_noop("Action"),
    gettext_noop("Body parts"),
    gettext_noop("Counting"),
    gettext_noop("Negation"),
    gettext_noop("Shapes"),
    gettext_noop("Size relation"),
    gettext_noop("Spatial relation"),
    gettext_noop("Parts of things"),
)


class Side(models.TextChoices):
    """What an image was made from. ``alt_contrast`` images are judged against ``contrast``."""

    PROMPT = "prompt", _("Prompt")
    CONTRAST = "contrast", _("Contrast")
    ALT_CONTRAST = "alt_contrast", _("Alternative contrast")


class Category(models.Model):
    """One of the visual properties in which the two texts of a pair differ."""

    slug = models.SlugField(primary_key=True, max_length=40)
    label = models.CharField(max_length=60)
    position = models.PositiveSmallIntegerField()
    question = models.CharField(max_length=200, blank=True)
    guideline = models.TextField(blank=True)

    class Meta:
        ordering = ["position", "slug"]
        verbose_name_plural = "categories"

    def __str__(self) -> str:
        return self.label

    @property
    def title(self) -> str:
        """The label in the reader's language; labels of one's own stay as they are."""
        return gettext(self.label)

    @property
    def evaluated_side(self) -> str:
        """The contrast side whose images are scored."""
        return Side.ALT_CONTRAST if self.slug == NEGATION else Side.CONTRAST


class ContrastPairQuerySet(models.QuerySet["ContrastPair"]):
    """Pairs in domain words."""

    def active(self) -> ContrastPairQuerySet:
        """The newest version of each pair that is still in use."""
        return self.filter(active=True)

    def in_bank(self, bank: str) -> ContrastPairQuerySet:
        """Pairs that came from one bank."""
        return self.filter(bank=bank)

    def with_images(self) -> ContrastPairQuerySet:
        """Pairs that candidates were made or asked for: their texts are fixed."""
        # A later room's rows, reached by the relation's name only.
        return self.filter(candidates__isnull=False).distinct()

    def search(self, words: str) -> ContrastPairQuerySet:
        """Pairs whose id, texts or labels contain each of the words."""
        found = self
        for word in words.split():
            fields = ("slug", "prompt", "contrast", "alt_contrast", "property", "topic", "entity")
            parts = (models.Q(**{f"{field}__icontains": word}) for field in fields)
            found = found.filter(reduce(or_, parts))
        return found

    def in_order(self) -> ContrastPairQuerySet:
        """In the order of the categories, then as loaded."""
        return self.order_by("category__position", "id")


class ContrastPair(models.Model):
    """Two texts that differ in one visual property. Texts stay as they are once candidates exist."""

    slug = models.CharField(max_length=80)
    version = models.PositiveIntegerField(default=1)
    category = models.ForeignKey(Category, on_delete=models.PROTECT, related_name="pairs")
    prompt = models.TextField()
    contrast = models.TextField()
    alt_contrast = models.TextField(blank=True)
    property = models.CharField(max_length=80, blank=True)
    topic = models.CharField(max_length=80, blank=True)
    entity = models.CharField(max_length=80, blank=True)
    bank = models.CharField(max_length=80, blank=True)
    active = models.BooleanField(default=True)
    retired_reason = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ContrastPairQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["slug", "version"], name="pair_version_once"),
            # Two edits at once must not leave two current versions of one pair.
            models.UniqueConstraint(
                fields=["slug"], condition=models.Q(active=True), name="pair_one_active_version"
            ),
            models.CheckConstraint(
                condition=~models.Q(prompt=models.F("contrast")), name="pair_texts_differ"
            ),
            # Imported benchmarks do not tell it; their pairs are not in use, so nothing is made of it.
            models.CheckConstraint(
                condition=~models.Q(category=NEGATION)
                | ~models.Q(alt_contrast="")
                | models.Q(active=False),
                name="pair_negation_has_alt_contrast",
            ),
        ]
        indexes = [models.Index(fields=["category", "slug"], name="pair_by_category")]

    def __str__(self) -> str:
        return self.slug if self.version == 1 else f"{self.slug} v{self.version}"

    def generation_text(self, side: str) -> str:
        """The text that images of ``side`` are made from."""
        texts = {
            Side.PROMPT: self.prompt,
            Side.CONTRAST: self.contrast,
            Side.ALT_CONTRAST: self.alt_contrast,
        }
        return texts[Side(side)]

    def own_text(self, side: str) -> str:
        """The text that images of ``side`` are judged against."""
        return self.prompt if side == Side.PROMPT else self.contrast

    def other_text(self, side: str) -> str:
        """The pair's text that images of ``side`` should not show."""
        return self.contrast if side == Side.PROMPT else self.prompt

    @builtins.property  # a field of this model is named `property`
    def evaluated_side(self) -> str:
        """The contrast side whose images are scored."""
        return Side.ALT_CONTRAST if self.category_id == NEGATION else Side.CONTRAST

    @builtins.property  # a field of this model is named `property`
    def generated_sides(self) -> list[str]:
        """The sides that images are made for: the two that are scored."""
        return [Side.PROMPT, self.evaluated_side]
