"""Tiny real checkpoints: the true classes of `transformers` with a few thousand random weights.

Each function writes a folder that `from_pretrained` opens like any published model. The weights
are random (seeded), so scores mean nothing, but every step on the way to them is the real one.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch
from tokenizers import pre_tokenizers

TEXT = """a the one two three four red green blue apples on plate table with without vase dog cat
ball soccer bounces sits left right of is in house car yes no Yes No ? . , ! : ' " Does this image
figure show Please answer or not description and large small circle"""


def words() -> list[str]:
    """Words that whole-word tokenizers of the tests know."""
    return re.findall(r"\S+", TEXT)


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


CHAT = (
    "{% for message in messages %}{{ message['role'].upper() + ': ' }}"
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}{{ '<image>\n' }}"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{{ ' ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)


def save_piece_tokenizer(
    folder: Path, *, specials: dict[str, str], extra: list[str] | dict[str, str]
) -> int:
    """A byte-level BPE tokenizer that knows the tests' words with a space in front; its size."""
    from tokenizers import Tokenizer, decoders, models, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        initial_alphabet=_byte_alphabet(),
        special_tokens=[
            *specials.values(),
            *(extra.values() if isinstance(extra, dict) else extra),
        ],
        show_progress=False,
    )
    tokenizer.train_from_iterator([" ".join(words()), " Yes No Yes No"] * 3, trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, extra_special_tokens=extra, **specials
    ).save_pretrained(folder)
    return int(tokenizer.get_vocab_size())


def llava(folder: Path, *, padding_side: str = "left") -> Path:
    """LLaVA: a CLIP tower of 16 patches and a small Llama, with a chat template."""
    from transformers import (
        AutoTokenizer,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )
    from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil

    specials = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    size = save_piece_tokenizer(folder, specials=specials, extra=["<image>"])
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side=padding_side)
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=3,
            num_attention_heads=4,
            image_size=32,
            patch_size=8,
        ),
        text_config=LlamaConfig(
            vocab_size=size,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            pad_token_id=2,
        ),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
    )
    torch.manual_seed(19)
    louder(LlavaForConditionalGeneration(config), factor=8.0).save_pretrained(folder)
    LlavaProcessor(
        image_processor=LlavaImageProcessorPil(
            size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
        ),
        tokenizer=tokenizer,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=CHAT,
    ).save_pretrained(folder)
    return folder


def clip_flant5(folder: Path, *, tower_inside: bool = True) -> Path:
    """The published layout of CLIP-FlanT5: T5's names, mm_projector.0/.2, the tower beside them."""
    import json

    from safetensors.torch import save_file
    from transformers import CLIPVisionModel, T5Config, T5ForConditionalGeneration
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tower_folder = folder.parent / f"{folder.name}-tower"
    torch.manual_seed(23)
    tower = louder(CLIPVisionModel(_clip_config().vision_config))
    tower.save_pretrained(tower_folder)
    CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    ).save_pretrained(tower_folder)
    vocabulary = save_word_tokenizer(
        folder,
        specials={"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"},
        longest=128,
    )
    config = T5Config(
        vocab_size=len(vocabulary) + 8,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=2,
    )
    t5 = louder(T5ForConditionalGeneration(config), factor=1.5)
    weights = {name: value.clone() for name, value in t5.state_dict().items()}
    weights["embed_tokens.weight"] = t5.shared.weight.detach().clone()  # the alias that is stored
    for name, size in (("0", 32), ("2", 32)):
        weights[f"mm_projector.{name}.weight"] = torch.randn(32, size) * 0.4
        weights[f"mm_projector.{name}.bias"] = torch.randn(32) * 0.1
    if tower_inside:
        for name, value in tower.state_dict().items():
            weights[f"vision_tower.vision_tower.{name}"] = value.clone()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    described = config.to_dict() | {
        "model_type": "clip_t5",
        "architectures": ["CLIPT5ForConditionalGeneration"],
        "mm_vision_tower": str(tower_folder),
        "mm_vision_select_layer": -2,
        "mm_hidden_size": 32,
        "mm_projector_type": "mlp2x_gelu",
    }
    (folder / "config.json").write_text(json.dumps(described, default=str), "utf-8")
    return folder


PHI4_TOKENS = ["<|user|>", "<|assistant|>", "<|end|>", "<|endoftext10|>", "<|endoftext11|>"]
PHI4_LORA = {"r": 4, "lora_alpha": 8}


def _phi4_model(size: int, image_token: int) -> torch.nn.Module:
    from transformers import Phi4MultimodalConfig, Phi4MultimodalForCausalLM

    head = 16
    config = Phi4MultimodalConfig(
        vocab_size=size,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        original_max_position_embeddings=128,
        max_position_embeddings=512,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=1,
        rope_parameters={
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "short_factor": [1.0] * (head // 2),
            "long_factor": [4.0] * (head // 2),
            "partial_rotary_factor": 1.0,
        },
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "image_size": 32,
            "crop_size": 32,
            "patch_size": 8,
            "image_token_id": image_token,
        },
        audio_config={
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_blocks": 1,
            "num_attention_heads": 1,
            "ext_pw_out_channel": 16,
            "depthwise_separable_out_channel": 16,
            "nemo_conv_channels": 16,
        },
    )
    torch.manual_seed(29)
    model = Phi4MultimodalForCausalLM(config)
    for block in (model.model.embed_tokens_extend.image_embed, model.model.layers):
        louder(block, factor=6.0)
    torch.nn.init.normal_(model.lm_head.weight, std=0.3)
    return model.eval()


def _phi4_tokenizer(folder: Path) -> tuple[int, int]:
    from transformers import AutoTokenizer

    specials = {"pad_token": "<pad>", "eos_token": "<|endoftext|>"}
    size = save_piece_tokenizer(folder, specials=specials, extra=PHI4_TOKENS)
    token = AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids("<|endoftext10|>")
    return size, token


def phi4_native(folder: Path) -> Path:
    """Phi4MultimodalForCausalLM as `save_pretrained` writes it."""
    size, token = _phi4_tokenizer(folder)
    _phi4_model(size, token).save_pretrained(folder)
    return folder


def phi4_published(folder: Path) -> Path:
    """The same model in the research code's layout: other names, adapters beside their weights."""
    import json

    from safetensors.torch import save_file

    size, token = _phi4_tokenizer(folder)
    model = _phi4_model(size, token)
    renamed = {
        "img_projection_up.": "img_projection.0.",
        "img_projection_down.": "img_projection.2.",
        "global_img_feature_extensor": "glb_GN",
        "sub_img_feature_extensor": "sub_GN",
    }
    weights = {}
    for name, value in model.state_dict().items():
        for new, old in renamed.items():
            name = name.replace(new, old)
        value = value.clone()
        if ".layers." in name and "proj.weight" in name and "image_embed" not in name:
            stem = name.removesuffix(".weight")
            down = torch.randn(4, value.shape[1]) * 0.1
            up = torch.randn(value.shape[0], 4) * 0.1
            weights[f"{stem}.base_layer.weight"] = value - 2.0 * up @ down  # 2 = alpha / r
            weights[f"{stem}.lora_A.vision.weight"] = down
            weights[f"{stem}.lora_B.vision.weight"] = up
            weights[f"{stem}.lora_A.speech.weight"] = torch.randn(4, value.shape[1])
            weights[f"{stem}.lora_B.speech.weight"] = torch.randn(value.shape[0], 4)
        else:
            weights[name] = value
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config.to_dict()
    rope = config.pop("rope_parameters")
    described = {
        key: config[key]
        for key in (
            "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
            "num_attention_heads", "num_key_value_heads", "original_max_position_embeddings",
            "max_position_embeddings", "pad_token_id", "bos_token_id", "eos_token_id",
        )
    } | {
        "model_type": "phi4mm",
        "architectures": ["Phi4MMForCausalLM"],
        "auto_map": {"AutoModelForCausalLM": "modeling_phi4mm.Phi4MMForCausalLM"},
        "rope_theta": rope["rope_theta"],
        "rope_scaling": {
            "type": "longrope",
            "short_factor": rope["short_factor"],
            "long_factor": rope["long_factor"],
        },
        "embd_layer": {"image_embd_layer": {"crop_size": 32, "use_hd_transform": True}},
        "img_processor": {
            key: config["vision_config"][key]
            for key in (
                "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                "image_size", "patch_size", "image_token_id",
            )
        },
        "vision_lora": PHI4_LORA | {"dp": 0.0, "layer": "layers.*"},
        "speech_lora": PHI4_LORA,
        "audio_processor": {"config": {}, "name": "cascades"},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(described), "utf-8")
    return folder


def blip_vqa(folder: Path) -> Path:
    """BlipForQuestionAnswering over the tests' words; [DEC] starts an answer, [ENC] a question."""
    from transformers import BlipConfig, BlipForQuestionAnswering
    from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

    specials = BERT_SPECIALS | {"bos_token": "[DEC]"}
    vocabulary = save_word_tokenizer(folder, specials=specials, longest=64)
    config = BlipConfig(
        text_config={
            "vocab_size": len(vocabulary) + 1,  # the last one is [ENC]
            "hidden_size": 32,
            "encoder_hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 64,
            "bos_token_id": vocabulary.index("[DEC]"),
            "sep_token_id": vocabulary.index("[SEP]"),
            "eos_token_id": vocabulary.index("[SEP]"),
            "pad_token_id": 0,
        },
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 32,
            "patch_size": 8,
        },
    )
    torch.manual_seed(31)
    model = louder(BlipForQuestionAnswering(config), factor=8.0)
    louder(model.vision_model.embeddings.patch_embedding, factor=20.0)
    for layer in model.text_encoder.encoder.layer:
        louder(layer.crossattention, factor=4.0)
    model.save_pretrained(folder)
    BlipImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


def blip_enc_token(folder: Path) -> int:
    """The id that stands in for BLIP's 30523."""
    import json

    return int(json.loads((folder / "config.json").read_text())["text_config"]["vocab_size"]) - 1


def paligemma(folder: Path) -> Path:
    """PaliGemma: its image looks at the text behind it, so nothing of a prompt can be shared."""
    from transformers import (
        AutoTokenizer,
        GemmaConfig,
        PaliGemmaConfig,
        PaliGemmaForConditionalGeneration,
        PaliGemmaProcessor,
        SiglipVisionConfig,
    )
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    specials = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}
    save_piece_tokenizer(folder, specials=specials, extra=["<image>"])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    image_processor = SiglipImageProcessorPil(size={"height": 32, "width": 32})
    image_processor.image_seq_length = 16
    processor = PaliGemmaProcessor(image_processor=image_processor, tokenizer=tokenizer)
    config = PaliGemmaConfig(
        vision_config=SiglipVisionConfig(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            image_size=32,
            patch_size=8,
        ),
        text_config=GemmaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=1,
            head_dim=8,
            pad_token_id=2,
        ),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        projection_dim=32,
        hidden_size=32,
    )
    torch.manual_seed(37)
    louder(PaliGemmaForConditionalGeneration(config), factor=8.0).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
