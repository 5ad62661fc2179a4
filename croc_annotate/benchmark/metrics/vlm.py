"""What the metrics that ask a language model share: the answer's token and the logits before it.

Texts are padded on the right and the logits are taken at each row's last real token. A causal
model never looks to the right, so padding cannot reach that position, and position numbers are
those of the single text. (Padded on the left, `logits[:, -1]` is right too, but positions shift;
padded on the right, `logits[:, -1]` reads a pad.) They come from a forward pass: `generate` may
change them by a repetition penalty.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch

from croc_annotate.benchmark.metric import MetricError

if TYPE_CHECKING:
    from collections.abc import Sequence


def answer_token(tokenizer: Any, *, before: str, answer: str) -> int:
    """The first token of the answer as it is written behind the end of the prompt."""
    space = "" if not before or before[-1].isspace() or before.endswith((">", "]")) else " "
    prompt = tokenizer(before, add_special_tokens=False)["input_ids"]
    whole = tokenizer(f"{before}{space}{answer}", add_special_tokens=False)["input_ids"]
    if whole[: len(prompt)] != prompt or len(whole) == len(prompt):
        raise MetricError(
            f"The tokenizer joins the end of the prompt {before[-20:]!r} with the answer "
            f"{answer!r}; end the prompt without a space."
        )
    return int(whole[len(prompt)])


def last_positions(attention_mask: torch.Tensor) -> torch.Tensor:
    """The last real token of each row, whichever side the padding is on: int64 [rows]."""
    places = torch.arange(attention_mask.shape[1], device=attention_mask.device)
    return (attention_mask * places).argmax(dim=1)


def next_token_logits(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """float32 [rows, vocabulary]: what the model says after the last real token of each row.

    Only the needed positions go through the output layer: a full set of logits of a batch of
    long prompts would weigh gigabytes.
    """
    last = last_positions(inputs["attention_mask"])
    kept, place = torch.unique(last, return_inverse=True)
    logits = model(**inputs, logits_to_keep=kept, use_cache=False).logits
    rows = torch.arange(len(last), device=logits.device)
    return logits[rows, place].float()


def logits_after_prefix(
    model: Any, prefix: dict[str, torch.Tensor], tails: Sequence[Sequence[int]], owner: list[int]
) -> torch.Tensor:
    """float32 [tails, vocabulary]: what the model says after each tail of its own prefix.

    `prefix` holds one row for each image, all of one length: the prompt up to where the texts
    begin to differ, with the image. It runs once; `owner` names the row that each tail continues.
    Image and decoder are so spared for every further text.
    """
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    cache = getattr(model(**prefix, use_cache=True, logits_to_keep=1), name)
    device = prefix["input_ids"].device
    rows = torch.tensor(owner, device=device)
    cache.reorder_cache(rows)
    ids, mask = right_padded(tails, device)
    kept, place = torch.unique(last_positions(mask), return_inverse=True)
    logits = model(
        input_ids=ids,  # no mask: all prefixes are equally long, and padding stands behind
        use_cache=True,
        logits_to_keep=kept,
        **{name: cache},
    ).logits
    return logits[torch.arange(len(tails), device=logits.device), place].float()


def right_padded(
    rows: Sequence[Sequence[int]], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask, int64 [rows, longest]; what stands under the mask is never looked at."""
    longest = max(len(row) for row in rows)
    ids = torch.zeros((len(rows), longest), dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = torch.tensor(row)
        mask[index, : len(row)] = 1
    return ids.to(device), mask.to(device)


def common_start(rows: Sequence[Sequence[int]]) -> int:
    """How many first ids all rows share, always leaving one of each row over."""
    longest = min(len(row) for row in rows) - 1
    for place in range(longest):
        if len({row[place] for row in rows}) > 1:
            return place
    return longest
