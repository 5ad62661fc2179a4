"""The model runners on real pipelines: random weights, a few hundred kilobytes, loaded from disk."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the gpu extra: pip install 'croc-annotate[gpu]'")
pytest.importorskip("diffusers", reason="needs the gpu extra: pip install 'croc-annotate[gpu]'")

import torch
from diffusers import FluxPipeline
from diffusers.hooks import group_offloading

from generation.batching import FittingBatches
from generation.pipeline import DeviceLost, DoesNotFit, PipelineError, RenderedImage, RenderFailure
from generation.registry import build_pipeline
from tests.generation import tiny_pipelines

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

TEXT = "a plate with three red apples"
RUNNERS = {"flux": "flux", "sd3": "sd3", "diffusers": "flux", "diffusers of SDXL": "sdxl"}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, str]:
    """Model folders by name, saved once."""
    folder = tmp_path_factory.mktemp("models")
    return {
        "flux": tiny_pipelines.save(tiny_pipelines.flux(), folder / "flux"),
        "sd3": tiny_pipelines.save(tiny_pipelines.sd3(), folder / "sd3"),
        "sdxl": tiny_pipelines.save(tiny_pipelines.sdxl(), folder / "sdxl"),
    }


@pytest.fixture
def runner(models: dict[str, str]):
    """A loaded runner by its name in the registry."""

    def load(name: str = "flux", **settings: object):
        small = {"width": 32, "height": 32, "steps": 2, "dtype": "float32", "device": "cpu"}
        built = build_pipeline(
            slug=name,
            pipeline=name.split()[0],
            model_id=models[RUNNERS[name]],
            revision="",
            settings={**small, "max_sequence_length": 48, **settings},
        )
        built.load()
        return built

    return load


def pixels(outcome: object) -> np.ndarray:
    assert isinstance(outcome, RenderedImage), outcome
    return np.asarray(outcome.image).astype(int)


@pytest.mark.parametrize(
    ("name", "steps", "guidance", "tokens"), [("flux", 50, 3.5, 512), ("sd3", 28, 3.5, 256)]
)
def test_the_defaults_are_those_of_the_published_images(
    models, name: str, steps: int, guidance: float, tokens: int
) -> None:
    settings = build_pipeline(
        slug=name, pipeline=name, model_id=models[name], revision="", settings={}
    ).spec.settings
    assert (settings.steps, settings.guidance, settings.max_sequence_length) == (
        steps,
        guidance,
        tokens,
    )
    assert (settings.width, settings.height, settings.dtype) == (1024, 1024, "bfloat16")


@pytest.mark.field_case(49)
@pytest.mark.parametrize("name", list(RUNNERS))
def test_the_image_of_a_seed_does_not_depend_on_its_batch(runner, name: str) -> None:
    loaded = runner(name)
    alone = {seed: pixels(next(iter(loaded.render(TEXT, [seed])))) for seed in (1, 2, 3)}
    together = {o.seed: pixels(o) for o in loaded.render(TEXT, [3, 1, 2])}
    for seed, image in alone.items():
        difference = np.abs(image - together[seed])
        # Measured in float32 on the CPU: at most one level of 255 in under 0.1 % of the values.
        assert difference.max() <= 1
        assert (difference > 0).mean() < 0.001
    assert np.abs(alone[1] - alone[2]).mean() > 5


@pytest.mark.parametrize("name", ["flux", "sd3"])
def test_the_image_is_the_one_that_diffusers_itself_gives(runner, name: str) -> None:
    loaded = runner(name)
    ours = pixels(next(iter(loaded.render(TEXT, [5]))))
    published = loaded._pipe(
        TEXT, width=32, height=32, num_inference_steps=2, guidance_scale=3.5,
        max_sequence_length=48, generator=torch.Generator("cpu").manual_seed(5),
    ).images[0]  # fmt: skip
    assert np.array_equal(ours, np.asarray(published).astype(int))


@pytest.mark.parametrize("name", ["flux", "sd3"])
def test_a_text_is_embedded_once_for_all_its_batches(runner, name: str) -> None:
    loaded = runner(name)
    calls: list[str] = []
    embed = loaded.embed
    loaded.embed = lambda text: calls.append(text) or embed(text)
    for text, seeds in ((TEXT, [1, 2]), (TEXT, [3]), ("four apples", [1]), (TEXT, [4])):
        list(loaded.render(text, seeds))
    assert calls == [TEXT, "four apples", TEXT]


@pytest.mark.parametrize("name", ["diffusers", "diffusers of SDXL"])
def test_any_pipeline_s_encoders_run_once_for_a_text(runner, name: str) -> None:
    loaded, plain = runner(name, negative_prompt="blurred"), runner(name, negative_prompt="blurred")
    plain._pipe.encode_prompt = plain._encoded._encode  # as diffusers has it
    calls: list[int] = []
    loaded._pipe.text_encoder_2.register_forward_hook(lambda *_: calls.append(1))
    runs = []
    for text, seeds in ((TEXT, [1, 2]), (TEXT, [3, 4]), ("four apples", [1, 2]), (TEXT, [5, 6])):
        before = len(calls)
        ours = [pixels(outcome) for outcome in loaded.render(text, seeds)]
        assert np.array_equal(ours, [pixels(outcome) for outcome in plain.render(text, seeds)])
        runs.append(len(calls) - before)
    assert runs[0] > 0
    assert runs == [runs[0], 0, runs[0], runs[0]]


def test_two_texts_give_two_images_and_a_run_repeats_itself(runner) -> None:
    first, again = (pixels(next(iter(runner().render(TEXT, [1])))) for _ in "ab")
    other = pixels(next(iter(runner().render("a dog", [1]))))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.field_case(48)
def test_not_a_number_is_a_failure_for_the_image_that_has_it(runner) -> None:
    loaded = runner()
    decode = loaded._pipe.vae.decode

    def poisoned(latents, **options):
        decoded = decode(latents, **options)[0]
        decoded[1] = float("nan")
        return (decoded,)

    loaded._pipe.vae.decode = poisoned
    outcomes = list(loaded.render(TEXT, [1, 2, 3]))
    assert [type(o) for o in outcomes] == [RenderedImage, RenderFailure, RenderedImage]
    assert "NaN" in outcomes[1].reason


@pytest.mark.field_case(47)
@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory"
        ),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ],
)
def test_an_exhausted_allocator_halves_the_batch(runner, error: RuntimeError) -> None:
    loaded = runner(batch_size=8)
    forward = loaded._pipe.transformer.forward

    def short_of_memory(*args, **kwargs):
        if kwargs["hidden_states"].shape[0] > 2:
            raise error
        return forward(*args, **kwargs)

    loaded._pipe.transformer.forward = short_of_memory
    with pytest.raises(DoesNotFit):
        list(loaded.render(TEXT, [1, 2, 3]))
    batches = FittingBatches(loaded)
    outcomes = list(batches.render(TEXT, range(1, 9)))
    assert [o.seed for o in outcomes] == list(range(1, 9))
    assert all(isinstance(o, RenderedImage) for o in outcomes)
    assert batches.size == 2


@pytest.mark.field_case(48)
def test_an_image_that_the_safety_checker_blacked_is_a_failure(runner) -> None:
    loaded = runner("sd3")
    list(loaded.render(TEXT, [1]))  # the text's embeddings are there
    pipe = loaded._pipe

    def checked(**arguments: object) -> SimpleNamespace:
        images = pipe(**arguments).images
        return SimpleNamespace(images=images, nsfw_content_detected=[False, True, False])

    loaded._pipe = checked
    outcomes = list(loaded.render(TEXT, [1, 2, 3]))
    assert [type(o) for o in outcomes] == [RenderedImage, RenderFailure, RenderedImage]
    assert "safety checker" in outcomes[1].reason


def test_a_lost_device_is_told_from_a_bad_image(runner) -> None:
    loaded = runner()

    def lost(*_args, **_kwargs):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    loaded._pipe.transformer.forward = lost
    with pytest.raises(DeviceLost):
        list(FittingBatches(loaded).render(TEXT, [1]))


@pytest.mark.parametrize(
    ("error", "raised", "said"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), PipelineError, "does not fit .* `offload`"),
        (RuntimeError("CUDA error: unspecified launch failure"), DeviceLost, "launch failure"),
    ],
)
@pytest.mark.parametrize("step", ["from_pretrained", "to"])
def test_a_device_that_fails_while_weights_are_loaded_is_said(
    runner, monkeypatch, step: str, error: RuntimeError, raised: type[Exception], said: str
) -> None:
    def fail(*_args, **_kwargs):
        raise error

    monkeypatch.setattr(FluxPipeline, step, fail)
    with pytest.raises(raised, match=said):
        runner()


def test_with_the_first_block_cache_images_still_do_not_depend_on_their_batch(runner) -> None:
    loaded = runner(first_block_cache=0.2, steps=6)
    alone = [pixels(next(iter(loaded.render(TEXT, [seed])))) for seed in (1, 2)]
    together = [pixels(outcome) for outcome in loaded.render(TEXT, [1, 2])]
    assert np.array_equal(alone, together)


def test_the_first_block_cache_skips_the_other_blocks_of_steps_that_change_little(runner) -> None:
    def drawn(**settings: object) -> tuple[np.ndarray, int]:
        loaded = runner(steps=6, **settings)
        calls: list[int] = []
        tail = loaded._pipe.transformer.single_transformer_blocks[0].norm
        tail.register_forward_hook(lambda *_: calls.append(1))
        return pixels(next(iter(loaded.render(TEXT, [1])))), len(calls)

    plain, every_step = drawn()
    careful, all_steps = drawn(first_block_cache=0.0)
    eager, some_steps = drawn(first_block_cache=10.0)
    assert (every_step, all_steps, some_steps) == (6, 6, 1)
    assert np.array_equal(plain, careful)
    # Measured with these random weights: the picture changes, and stays the same picture.
    assert 0 < np.abs(plain - eager).mean() < 12


def test_a_compiled_denoiser_draws_the_same(runner, monkeypatch) -> None:
    """With dynamo's own backend: inductor needs half a minute of a C++ compiler."""
    compiled: list[str] = []
    compile_module = torch.nn.Module.compile

    def traced(module: torch.nn.Module, *args: object, **options: object) -> None:
        compiled.append(type(module).__name__)
        compile_module(module, *args, backend="aot_eager", **options)

    monkeypatch.setattr(torch.nn.Module, "compile", traced)
    plain = pixels(next(iter(runner().render(TEXT, [1]))))
    fast = pixels(next(iter(runner(compile=True).render(TEXT, [1]))))
    assert set(compiled) == {"FluxTransformerBlock", "FluxSingleTransformerBlock"}
    assert np.abs(plain - fast).max() <= 1


def test_a_pipeline_that_stays_where_it_is_does_not_look_for_its_device(
    runner, monkeypatch
) -> None:
    loaded = runner()
    pixels(next(iter(loaded.render(TEXT, [1]))))  # its text is embedded
    looked: list[object] = []
    monkeypatch.setattr(group_offloading, "_get_top_level_group_offload_hook", looked.append)
    pixels(next(iter(loaded.render(TEXT, [2]))))
    assert looked == []
    assert type(loaded._pipe).__name__ == "FluxPipeline"
    assert "_execution_device" in vars(type(loaded._pipe))
    assert "_execution_device" not in vars(type(runner(offload="model")._pipe))


def test_weights_that_come_layer_by_layer_need_an_accelerator(runner) -> None:
    with pytest.raises(PipelineError, match="offload: sequential needs an accelerator"):
        runner(offload="sequential")


def test_a_cache_that_a_model_does_not_have_is_refused_in_words(runner) -> None:
    with pytest.raises(PipelineError, match="first_block_cache: the denoiser of StableDiffusion3"):
        runner("sd3", first_block_cache=0.2)


def test_weights_that_wait_in_main_memory_draw_the_same(runner) -> None:
    plain = pixels(next(iter(runner().render(TEXT, [1]))))
    offloaded = pixels(next(iter(runner(offload="model").render(TEXT, [1]))))
    assert np.array_equal(plain, offloaded)


def test_half_precision_draws_too(runner) -> None:
    image = pixels(next(iter(runner(dtype="bfloat16").render(TEXT, [1]))))
    full = pixels(next(iter(runner().render(TEXT, [1]))))
    assert np.abs(image - full).mean() < 12


def test_guidance_of_one_needs_no_negative_embedding(runner) -> None:
    loaded = runner("sd3", guidance=1.0)
    assert {k for k, v in loaded.embed(TEXT).items() if v is not None} == {
        "prompt_embeds",
        "pooled_prompt_embeds",
    }
    pixels(next(iter(loaded.render(TEXT, [1]))))


def test_any_pipeline_takes_what_its_call_knows_and_refuses_the_rest(runner) -> None:
    loaded = runner("diffusers", extra={"true_cfg_scale": 1.0})
    arguments = loaded.call_arguments()
    assert arguments["num_inference_steps"] == 2
    assert arguments["true_cfg_scale"] == 1.0
    with pytest.raises(PipelineError, match="no argument strenght"):
        runner("diffusers", extra={"strenght": 1})


def test_a_model_that_is_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for model_id in (str(tmp_path / "empty"), "nobody/no-such-model"):
        built = build_pipeline(
            slug="x", pipeline="flux", model_id=model_id, revision="", settings={}
        )
        with pytest.raises(PipelineError, match="Cannot load"):
            built.load()


def test_provenance_names_model_settings_software_and_device(runner) -> None:
    told = runner().describe()
    assert told["pipeline"] == "FluxPipeline"
    assert told["software"].keys() == {"python", "torch", "diffusers", "transformers"}
    assert told["device"].startswith("cpu")
    assert told["settings"]["steps"] == 2


@pytest.mark.parametrize("kind", ["bitsandbytes_4bit", "bitsandbytes_8bit", "torchao_int8"])
def test_quantisation_without_its_library_is_explained(runner, monkeypatch, kind: str) -> None:
    monkeypatch.setitem(sys.modules, "torchao.quantization", None)
    monkeypatch.setattr("generation.pipelines.torch_runner.find_spec", lambda _name: None)
    with pytest.raises(PipelineError, match=f"{kind} needs.*: pip install {kind.split('_')[0]}"):
        runner(quantisation=kind)


@pytest.mark.parametrize(("dtype", "mean"), [("float32", 0.5), ("bfloat16", 3.0)])
def test_weights_in_eight_bits_draw_nearly_the_same(runner, dtype: str, mean: float) -> None:
    pytest.importorskip("torchao", reason="pip install torchao (28 MB) to run this one")
    loaded = runner(quantisation="torchao_int8", dtype=dtype)
    kinds = {type(weight).__name__ for weight in loaded._pipe.transformer.parameters()}
    assert "Int8Tensor" in kinds
    plain = pixels(next(iter(runner().render(TEXT, [1]))))
    # Measured with torchao 0.18 on the CPU: 0.1 levels of 255 in float32, 0.8 in bfloat16.
    assert 0 < np.abs(plain - pixels(next(iter(loaded.render(TEXT, [1]))))).mean() < mean


def test_the_settings_of_a_row_reach_the_pipeline_of_a_third_party() -> None:
    built = build_pipeline(
        slug="own",
        pipeline="tests.generation.fakes:Noise",
        model_id="m",
        revision="r",
        settings={"batch_size": 2},
    )
    assert (built.spec.settings.batch_size, built.spec.revision) == (2, "r")
