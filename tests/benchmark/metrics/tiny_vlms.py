"""Tiny vision language models of the families that `vqascore` is used with, random but loud.

Each has what sets its family apart: positions in three axes (Qwen2.5-VL), tiles and a pixel
shuffle (InternVL), an image that looks at itself both ways and windowed layers (Gemma 3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from croc_annotate.benchmark.metrics import torch_support
from tests.benchmark.metrics.tiny import louder, save_piece_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

QWEN_CHAT = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}"
    "{{ '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
INTERNVL_CHAT = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}{{ '<IMG_CONTEXT>\n' }}"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
GEMMA_CHAT = (
    "{{ bos_token }}{% for message in messages %}{{ '<start_of_turn>' + message['role'] + '\n' }}"
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}{{ '<start_of_image>' }}"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{{ '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)


def qwen(folder: Path) -> Path:
    """Qwen2.5-VL: as many image tokens as the image has patches, positions in three axes."""
    from transformers import (
        AutoTokenizer,
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
    )
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    marks = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>", "<|im_start|>"]
    specials = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    save_piece_tokenizer(folder, specials=specials, extra=marks)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = {mark: tokenizer.convert_tokens_to_ids(mark) for mark in marks}
    config = Qwen2_5_VLConfig(
        vision_config={
            "depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 4,
            "out_hidden_size": 32, "patch_size": 8, "spatial_merge_size": 2,
            "temporal_patch_size": 2, "window_size": 32, "fullatt_block_indexes": [1],
        },
        text_config={
            "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2],
                                "rope_theta": 10_000.0},
        },
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )  # fmt: skip
    torch.manual_seed(41)
    louder(Qwen2_5_VLForConditionalGeneration(config), factor=8.0).save_pretrained(folder)
    torch_support.without_video(Qwen2_5_VLProcessor)(
        image_processor=Qwen2VLImageProcessorPil(
            patch_size=8, merge_size=2, temporal_patch_size=2,
            size={"shortest_edge": 16 * 16 * 4, "longest_edge": 64 * 64},
        ),
        tokenizer=tokenizer,
        chat_template=QWEN_CHAT,
    ).save_pretrained(folder)  # fmt: skip
    return folder


def internvl(folder: Path) -> Path:
    """InternVL: an image is cut into tiles, each of them of four tokens here."""
    from transformers import (
        AutoTokenizer,
        InternVLConfig,
        InternVLForConditionalGeneration,
        InternVLProcessor,
        Qwen2Config,
    )
    from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil

    marks = {
        "start_image_token": "<img>", "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>", "video_token": "<video>",
    }  # fmt: skip
    specials = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    save_piece_tokenizer(folder, specials=specials, extra=marks)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = InternVLConfig(
        vision_config={
            "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "image_size": [32, 32], "patch_size": [8, 8],
        },
        text_config=Qwen2Config(
            vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, bos_token_id=None, eos_token_id=0,
        ),
        image_token_id=tokenizer.context_image_token_id,
        image_seq_length=4,
    )  # fmt: skip
    torch.manual_seed(43)
    louder(InternVLForConditionalGeneration(config), factor=8.0).save_pretrained(folder)
    torch_support.without_video(InternVLProcessor)(
        image_processor=GotOcr2ImageProcessorPil(
            size={"height": 32, "width": 32}, crop_to_patches=True, min_patches=1, max_patches=4
        ),
        tokenizer=tokenizer,
        image_seq_length=4,
        chat_template=INTERNVL_CHAT,
    ).save_pretrained(folder)
    return folder


def gemma3(folder: Path) -> Path:
    """Gemma 3: four tokens an image, every other layer sees a window of 12 tokens only."""
    from transformers import (
        AutoTokenizer,
        Gemma3Config,
        Gemma3ForConditionalGeneration,
        Gemma3Processor,
    )
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

    marks = {
        "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>",
        "image_token": "<image_soft_token>",
    }  # fmt: skip
    specials = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}
    save_piece_tokenizer(folder, specials=specials, extra=marks)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = Gemma3Config(
        vision_config={
            "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "image_size": 32, "patch_size": 8,
        },
        text_config={
            "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 12,
            "layer_types": ["sliding_attention", "full_attention"],
            "pad_token_id": 2, "bos_token_id": 0, "eos_token_id": 1,
        },
        mm_tokens_per_image=4,
        boi_token_index=tokenizer.boi_token_id,
        eoi_token_index=tokenizer.eoi_token_id,
        image_token_index=tokenizer.image_token_id,
        pad_token_id=2, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    torch.manual_seed(47)
    model = louder(Gemma3ForConditionalGeneration(config), factor=8.0)
    # Begins as zeros: the image would say nothing.
    torch.nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight)
    model.save_pretrained(folder)
    Gemma3Processor(
        image_processor=Gemma3ImageProcessorPil(size={"height": 32, "width": 32}),
        tokenizer=tokenizer,
        image_seq_length=4,
        chat_template=GEMMA_CHAT,
    ).save_pretrained(folder)
    return folder
