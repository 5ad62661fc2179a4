"""Which pipelines there are: one line each, imported only when one is used.

Third parties add theirs without touching this file: an entry point in the group
`croc_annotate.pipelines`, or `package.module:Class` in a Generator's field `pipeline`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, cast

from generation.pipeline import GeneratorSpec, Pipeline
from generation.render_settings import SettingsError, parse_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

ENTRY_POINT_GROUP = "croc_annotate.pipelines"

PIPELINES: dict[str, str] = {
    "flux": "generation.pipelines.flux:FluxRunner",
    "sd3": "generation.pipelines.sd3:StableDiffusion3Runner",
    "diffusers": "generation.pipelines.any_diffusers:DiffusersRunner",
    "openai-images": "generation.pipelines.openai_images:OpenAIImages",
    "scenes": "generation.pipelines.scenes:ScenesPipeline",
}


def dotted_path(name: str) -> str:
    """The `module:Class` of a pipeline's name; raises SettingsError for an unknown name."""
    if ":" in name:
        return name
    if name in PIPELINES:
        return PIPELINES[name]
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        if entry.name == name:
            return entry.value
    raise SettingsError(
        f"No pipeline is called {name!r}. Known: {', '.join(sorted(PIPELINES))}, "
        f"entry points of the group {ENTRY_POINT_GROUP}, or a path 'package.module:Class'."
    )


def pipeline_class(name: str) -> type[Pipeline]:
    """Import and return a pipeline's class; raises SettingsError when it is not there."""
    module_name, _, class_name = dotted_path(name).partition(":")
    try:
        found = getattr(import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise SettingsError(
            f"The pipeline {name!r} ({module_name}:{class_name}) cannot be imported: {error}. "
            "Models need the gpu extra: pip install 'croc-annotate[gpu]'."
        ) from error
    return cast("type[Pipeline]", found)


def build_pipeline(
    *, slug: str, pipeline: str, model_id: str, revision: str, settings: Mapping[str, object]
) -> Pipeline:
    """A pipeline for a Generator row, not loaded yet; raises SettingsError."""
    if not pipeline:
        raise SettingsError(
            f"The generator {slug!r} names no pipeline: its images were made elsewhere. "
            "To render with it, set its field 'pipeline', e.g. to 'flux'."
        )
    factory = pipeline_class(pipeline)
    spec = GeneratorSpec(
        slug=slug,
        model_id=model_id,
        revision=revision,
        settings=parse_settings(settings, defaults=factory.defaults),
    )
    return factory(spec)  # type: ignore[call-arg]  # a Protocol has no __init__; ours take a spec
