"""What the metrics that ask a language model share: the answer's token and the logits before it.

Texts are padded on the right and the logits are taken at each row's last real token. A causal
model never looks to the right, so padding cannot reach that position, and position numbers are
those of the single text. (Padded on the left, `logits[:, -1]` is right too, but positions shift;
padded on the right, `logits[:, -1]` reads a pad.) They come from a forward pass: `generate` may
change them by a repetition penalty.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from croc_annotate.benchmark.metric import MetricError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


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


@contextmanager
def rows_encoded_once(tower: torch.nn.Module, owner: Sequence[int]) -> Iterator[None]:
    """Within the block, the vision tower runs once for an image, however many texts it has.

    `owner` gives the image of each row of a batch in which an image stands once for each of its
    texts. Towers that are not called with one or several whole rows for each image are left alone.
    """
    plain, before = tower.forward, tower.__dict__.get("forward")
    index = torch.tensor(owner)
    first = torch.tensor([owner.index(image) for image in dict.fromkeys(owner)])
    inverse = torch.tensor([list(dict.fromkeys(owner)).index(image) for image in owner])

    def once(pixels: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        crops, odd = divmod(len(pixels), len(index))
        if odd or crops == 0:
            return plain(pixels, *args, **kwargs)
        take = _rows(first, crops).to(pixels.device)
        back = _rows(inverse, crops).to(pixels.device)
        rows = len(pixels)
        few = {key: _pick(value, take, rows) for key, value in kwargs.items()}
        output = plain(pixels[take], *(_pick(value, take, rows) for value in args), **few)
        for key, value in output.items():
            output[key] = _pick(value, back, len(take))
        return output

    def by_name(*args: Any, **kwargs: Any) -> Any:
        pixels = args[0] if args else kwargs.pop("pixel_values")
        return once(pixels, *args[1:], **kwargs)

    tower.forward = by_name
    try:
        yield
    finally:
        del tower.forward
        if before is not None:  # somebody else's wrapper
            tower.forward = before


def _rows(images: torch.Tensor, crops: int) -> torch.Tensor:
    return (images[:, None] * crops + torch.arange(crops)[None, :]).flatten()


def _pick(value: Any, rows: torch.Tensor, length: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_pick(part, rows, length) for part in value)
    if isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape[0] == length:
        return value[rows]
    return value
