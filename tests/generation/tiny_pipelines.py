"""Real diffusers pipelines of a few hundred kilobytes, built with random weights and saved to disk."""

from __future__ import annotations

from pathlib import Path

import torch
from diffusers import (
    AutoencoderKL,
    DiffusionPipeline,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    FluxPipeline,
    FluxTransformer2DModel,
    SD3Transformer2DModel,
    StableDiffusion3Pipeline,
    StableDiffusionXLPipeline,
    UNet2DConditionModel,
)
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    PreTrainedTokenizerFast,
    T5Config,
    T5EncoderModel,
)

WORDS = [
    "a plate with three red apples on the table",
    "a dog is running left of two small houses without any windows",
    "one blue circle, a green square and 4 large yellow cars above the street",
]


def clip_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-pair tokenizer with CLIP's special tokens and length."""
    special = ["<|startoftext|>", "<|endoftext|>"]
    return _tokenizer(special, bos_token=special[0], eos_token=special[1], pad_token=special[1])


def t5_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-pair tokenizer with T5's special tokens."""
    return _tokenizer(
        ["<pad>", "</s>", "<unk>"], eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
    )


def _tokenizer(special: list[str], **names: str) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        WORDS,
        trainers.BpeTrainer(
            vocab_size=360,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=77, **names)


def clip_config(width: int = 32, layers: int = 2) -> CLIPTextConfig:
    return CLIPTextConfig(
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
        hidden_size=width,
        intermediate_size=width * 2,
        num_attention_heads=4,
        num_hidden_layers=layers,
        vocab_size=400,
        projection_dim=width,
        max_position_embeddings=77,
    )


def t5(width: int = 32, layers: int = 2) -> T5EncoderModel:
    config = T5Config(
        vocab_size=400,
        d_model=width,
        d_kv=8,
        d_ff=width * 2,
        num_layers=layers,
        num_heads=4,
        is_gated_act=True,
        feed_forward_proj="gated-gelu",
    )
    return T5EncoderModel(config).eval()


def vae(latent_channels: int, channels: tuple[int, ...] = (8, 16)) -> AutoencoderKL:
    return AutoencoderKL(
        in_channels=3,
        out_channels=3,
        block_out_channels=channels,
        down_block_types=["DownEncoderBlock2D"] * len(channels),
        up_block_types=["UpDecoderBlock2D"] * len(channels),
        latent_channels=latent_channels,
        norm_num_groups=4,
        layers_per_block=1,
        use_quant_conv=False,
        use_post_quant_conv=False,
        shift_factor=0.0609,
        scaling_factor=1.5035,
        sample_size=32,
    )


def flux(
    *, text_width: int = 32, text_layers: int = 2, blocks: int = 1, heads: int = 2
) -> FluxPipeline:
    """A FluxPipeline; by default 0.5 MB."""
    torch.manual_seed(0)
    return FluxPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        text_encoder=CLIPTextModel(clip_config()).eval(),
        tokenizer=clip_tokenizer(),
        text_encoder_2=t5(text_width, text_layers),
        tokenizer_2=t5_tokenizer(),
        vae=vae(1),
        transformer=FluxTransformer2DModel(
            patch_size=1,
            in_channels=4,
            num_layers=blocks,
            num_single_layers=blocks,
            attention_head_dim=16,
            num_attention_heads=heads,
            joint_attention_dim=text_width,
            pooled_projection_dim=32,
            guidance_embeds=True,
            axes_dims_rope=[4, 4, 8],
        ).eval(),
    )


def sd3(
    *, text_width: int = 64, text_layers: int = 2, blocks: int = 1, heads: int = 4
) -> StableDiffusion3Pipeline:
    """A StableDiffusion3Pipeline; by default 0.7 MB."""
    torch.manual_seed(0)
    return StableDiffusion3Pipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        text_encoder=CLIPTextModelWithProjection(clip_config()).eval(),
        tokenizer=clip_tokenizer(),
        text_encoder_2=CLIPTextModelWithProjection(clip_config()).eval(),
        tokenizer_2=clip_tokenizer(),
        text_encoder_3=t5(text_width, text_layers),
        tokenizer_3=t5_tokenizer(),
        vae=vae(4),
        transformer=SD3Transformer2DModel(
            sample_size=32,
            patch_size=1,
            in_channels=4,
            out_channels=4,
            num_layers=blocks,
            attention_head_dim=8,
            num_attention_heads=heads,
            joint_attention_dim=text_width,
            caption_projection_dim=8 * heads,
            pooled_projection_dim=64,
            pos_embed_max_size=32,
        ).eval(),
    )


def sdxl() -> StableDiffusionXLPipeline:
    """A StableDiffusionXLPipeline: a UNet, real guidance, another scheduler."""
    torch.manual_seed(0)
    return StableDiffusionXLPipeline(
        scheduler=EulerDiscreteScheduler(),
        text_encoder=CLIPTextModel(clip_config()).eval(),
        tokenizer=clip_tokenizer(),
        text_encoder_2=CLIPTextModelWithProjection(clip_config()).eval(),
        tokenizer_2=clip_tokenizer(),
        vae=AutoencoderKL(
            block_out_channels=(8, 16),
            down_block_types=["DownEncoderBlock2D"] * 2,
            up_block_types=["UpDecoderBlock2D"] * 2,
            latent_channels=4,
            norm_num_groups=4,
            layers_per_block=1,
            sample_size=32,
            force_upcast=False,
        ),
        unet=UNet2DConditionModel(
            block_out_channels=(8, 16),
            layers_per_block=1,
            sample_size=16,
            in_channels=4,
            out_channels=4,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            attention_head_dim=4,
            norm_num_groups=4,
            cross_attention_dim=64,
            addition_embed_type="text_time",
            addition_time_embed_dim=8,
            projection_class_embeddings_input_dim=6 * 8 + 32,
        ).eval(),
    )


def save(pipe: DiffusionPipeline, folder: Path) -> str:
    """Write a pipeline as a model folder and return its path."""
    pipe.save_pretrained(folder)
    return str(folder)
