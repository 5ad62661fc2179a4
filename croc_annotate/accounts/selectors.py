"""What pages of other rooms show about an account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from croc_annotate.accounts.forms import ACTION_LABELS
from croc_annotate.accounts.oidc import button_label
from croc_annotate.accounts.shortcuts import DEFAULTS, merged_shortcuts

if TYPE_CHECKING:
    from croc_annotate.accounts.models import User


def key_context(user: User) -> dict[str, Any]:
    """Template context of the judging page's keys: those in force, and each action with its default."""
    actions = [(action, str(ACTION_LABELS[action]), key) for action, key in DEFAULTS.items()]
    return {"shortcuts": merged_shortcuts(user.shortcuts), "key_actions": actions}


def sign_in_context() -> dict[str, Any]:
    """Template context of pages that offer to sign in: the words of the organisation's button."""
    return {"oidc_label": button_label()}
