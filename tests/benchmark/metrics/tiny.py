"""Tiny real checkpoints: the true classes of `transformers` with a few thousand random weights.

Each function writes a folder that `from_pretrained` opens like any published model. The weights
are random (seeded), so scores mean nothing, but every step on the way to them is the real one.
"""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import pre_tokenizers


def words() -> list[str]:
    """Words that whole-word tokenizers of the tests know."""
    return (
        "a the one two three four red green blue apples on plate table with without vase dog cat "
        "ball soccer bounces sits left right of is in house car yes no Yes No ? . , ! : ' \" "
        "Does this image figure show Please answer or not description and large small circle"
    ).split()


def _byte_alphabet() -> list[str]:
    return sorted(pre_tokenizers.ByteLevel.alphabet())


def save_clip_tokenizer(folder: Path, *, longest: int = 77) -> None:
    """CLIP's own tokenizer over single bytes: every text has tokens, long ones have many."""
    from transformers import CLIPTokenizer

    alphabet = _byte_alphabet()
    pieces = [*alphabet, *(f"{sign}</w>" for sign in alphabet), "<|startoftext|>", "<|endoftext|>"]
    vocab = {piece: index for index, piece in enumerate(pieces)}
    CLIPTokenizer(vocab=vocab, merges=[], model_max_length=longest).save_pretrained(folder)


CLIP_VOCABULARY = 2 * 256 + 2


def _clip_config(**changes: object) -> object:
    from transformers import CLIPConfig

    tower = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    return CLIPConfig(
        text_config={
            **tower,
            "vocab_size": CLIP_VOCABULARY,
            "max_position_embeddings": 77,
            "bos_token_id": CLIP_VOCABULARY - 2,
            "eos_token_id": CLIP_VOCABULARY - 1,
            "pad_token_id": CLIP_VOCABULARY - 1,
        },
        vision_config={**tower, "image_size": 32, "patch_size": 8},
        projection_dim=16,
        **changes,
    )


def louder(model: torch.nn.Module, *, factor: float = 6.0) -> torch.nn.Module:
    """Random weights at their usual size barely react to the input: make them react."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                parameter.mul_(factor)
    return model


def clip(folder: Path) -> Path:
    """CLIPModel with its processor: shortest edge 32, crop 32×32."""
    from transformers import CLIPModel
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    torch.manual_seed(7)
    louder(CLIPModel(_clip_config())).save_pretrained(folder)
    save_clip_tokenizer(folder)
    CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    ).save_pretrained(folder)
    return folder


def save_word_tokenizer(folder: Path, *, specials: dict[str, str], longest: int) -> list[str]:
    """A whole-word tokenizer of lower-case words; returns the vocabulary in order of ids."""
    from tokenizers import Tokenizer, models, normalizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = list(dict.fromkeys([*specials.values(), *(word.lower() for word in words())]))
    tokenizer = Tokenizer(
        models.WordLevel(
            {word: index for index, word in enumerate(vocabulary)}, unk_token=specials["unk_token"]
        )
    )
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    first, last = specials.get("cls_token"), specials.get("sep_token") or specials.get("eos_token")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}" if first else f"$A {last}",
        special_tokens=[(name, vocabulary.index(name)) for name in (first, last) if name],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=longest, **specials
    ).save_pretrained(folder)
    return vocabulary


BERT_SPECIALS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
}


def siglip(folder: Path) -> Path:
    """SiglipModel, 16 text positions, squash 32×32."""
    from transformers import SiglipConfig, SiglipModel
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    specials = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
    vocabulary = save_word_tokenizer(folder, specials=specials, longest=16)
    tower = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    config = SiglipConfig(
        text_config={
            **tower,
            "vocab_size": len(vocabulary),
            "max_position_embeddings": 16,
            "projection_size": 32,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
        },
        vision_config={**tower, "image_size": 32, "patch_size": 8},
    )
    torch.manual_seed(11)
    louder(SiglipModel(config), factor=2.0).save_pretrained(folder)
    SiglipImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


def align(folder: Path) -> Path:
    """AlignModel: a small EfficientNet and a small BERT, 48×48."""
    from transformers import AlignConfig, AlignModel
    from transformers.models.efficientnet.image_processing_pil_efficientnet import (
        EfficientNetImageProcessorPil,
    )

    vocabulary = save_word_tokenizer(folder, specials=BERT_SPECIALS, longest=32)
    config = AlignConfig(
        text_config={
            "vocab_size": len(vocabulary),
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 32,
        },
        vision_config={
            "image_size": 48,
            "width_coefficient": 1.0,
            "depth_coefficient": 0.3,
            "hidden_dim": 32,
            "in_channels": [32, 8, 16],
            "out_channels": [8, 16, 32],
            "kernel_sizes": [3, 3, 5],
            "strides": [1, 2, 2],
            "num_block_repeats": [1, 1, 1],
            "expand_ratios": [1, 4, 4],
        },
        projection_dim=32,
        temperature_init_value=0.25,
    )
    torch.manual_seed(13)
    louder(AlignModel(config), factor=3.0).save_pretrained(folder)
    EfficientNetImageProcessorPil(
        size={"height": 48, "width": 48},
        rescale_factor=1 / 127.5,
        rescale_offset=True,
        do_normalize=False,
        include_top=False,
        resample=0,
    ).save_pretrained(folder)
    return folder


def blip2_itm(folder: Path) -> Path:
    """Blip2ForImageTextRetrieval with 4 query tokens and an image token, as published."""
    from transformers import Blip2Config, Blip2ForImageTextRetrieval
    from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

    vocabulary = save_word_tokenizer(folder, specials=BERT_SPECIALS, longest=64)
    config = Blip2Config(
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 32,
            "patch_size": 8,
        },
        qformer_config={
            "vocab_size": len(vocabulary),
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 64,
            "use_qformer_text_input": True,
        },
        text_config={
            "model_type": "opt",
            "vocab_size": 8,
            "hidden_size": 8,
            "ffn_dim": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 1,
            "word_embed_proj_dim": 8,
        },
        num_query_tokens=4,
        image_text_hidden_size=16,
        image_token_index=len(vocabulary),
    )
    torch.manual_seed(17)
    model = louder(Blip2ForImageTextRetrieval(config), factor=8.0)
    torch.nn.init.normal_(model.query_tokens)
    torch.nn.init.normal_(model.itm_head.weight, std=0.5)
    model.save_pretrained(folder)
    BlipImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder
