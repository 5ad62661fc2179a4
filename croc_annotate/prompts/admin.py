"""Raw data of the bank for admins. Texts are changed on the site, where the rules are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from croc_annotate.prompts.models import Category, ContrastPair

if TYPE_CHECKING:
    from django.http import HttpRequest

    # Generic for the type checker only: at run time the class takes no parameter.
    CategoryModelAdmin = admin.ModelAdmin[Category]
    ContrastPairModelAdmin = admin.ModelAdmin[ContrastPair]
else:
    CategoryModelAdmin = ContrastPairModelAdmin = admin.ModelAdmin


@admin.register(Category)
class CategoryAdmin(CategoryModelAdmin):
    """The words that annotators read for each category."""

    list_display = ["slug", "label", "position", "question"]
    readonly_fields = ["slug", "position"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """The categories are those of the benchmark."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Category | None = None) -> bool:
        """The categories are those of the benchmark."""
        return False


@admin.register(ContrastPair)
class ContrastPairAdmin(ContrastPairModelAdmin):
    """Pairs, to be read only."""

    list_display = ["slug", "version", "category", "prompt", "contrast", "bank", "active"]
    list_filter = ["category", "active", "bank"]
    search_fields = ["slug", "prompt", "contrast"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Pairs are added on the site or by load_prompts."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: ContrastPair | None = None) -> bool:
        """Texts under images must not change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ContrastPair | None = None) -> bool:
        """Pairs are retired, not deleted."""
        return False
