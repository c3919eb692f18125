"""Vision towers of multimodal configurations: parameters that count and that a text-only step does not use."""

from __future__ import annotations

from tradespace.inputs.hf_config import Config, Fields
from tradespace.inputs.layers import Held

TOWER = "the vision tower is counted and held in memory; text alone is trained, so it costs no time"


def _tower(parameters: float) -> Fields:
    return {"front": (Held(name="vision", parameters=parameters),), "notes": (TOWER,)}


def _block(width: float, ffn: float) -> float:
    """An encoder block with biases and two LayerNorms."""
    return 4.0 * width * width + 4.0 * width + 2.0 * width * ffn + ffn + width + 4.0 * width


def qwen_vision(config: Config) -> Fields:
    """Qwen3-VL: patch convolution, position table, blocks, merger, and one merger per deep-stack layer."""
    vision = config.part("vision_config")
    if vision is None:
        return {}
    width, ffn = vision.size("width", ("hidden_size",)), vision.size("ffn", ("intermediate_size",))
    merged = width * vision.size("merge", ("spatial_merge_size",)) ** 2
    out = vision.size("out", ("out_hidden_size",))
    pixels = vision.optional("channels", ("in_channels",), 3.0) * vision.optional(
        "frames", ("temporal_patch_size",), 2.0
    )
    patch = pixels * vision.size("patch", ("patch_size",)) ** 2 * width + width
    merger = merged * merged + merged + merged * out + out
    deep_layers = vision.table.get("deepstack_visual_indexes")
    deep = float(len(deep_layers)) if isinstance(deep_layers, list) else 0.0
    blocks = vision.size("depth", ("depth",)) * _block(width, ffn)
    positions = vision.size("positions", ("num_position_embeddings",)) * width
    return _tower(patch + positions + blocks + merger + 2.0 * width + deep * (merger + 2.0 * merged))


def gemma_vision(config: Config) -> Fields:
    """Gemma 4: gated blocks with four norms and norms on queries and keys; a position table per direction."""
    vision = config.part("vision_config")
    if vision is None:
        return {}
    width, ffn = vision.size("width", ("hidden_size",)), vision.size("ffn", ("intermediate_size",))
    block = 4.0 * width * width + 2.0 * vision.size("head_dim", ("head_dim",)) + 4.0 * width + 3.0 * width * ffn
    patch = 3.0 * vision.size("patch", ("patch_size",)) ** 2 * width
    positions = 2.0 * vision.size("positions", ("position_embedding_size",)) * width
    blocks = vision.size("depth", ("num_hidden_layers",)) * block
    return _tower(patch + positions + blocks + width * config.size("hidden", ("hidden_size",)))


def llama_vision(config: Config) -> Fields:
    """Llama 4: patch projection, class token, position table, blocks, two norms, adapter of two matrices, projector."""
    vision = config.part("vision_config")
    if vision is None:
        return {}
    width, ffn = vision.size("width", ("hidden_size",)), vision.size("ffn", ("intermediate_size",))
    patch = vision.size("patch", ("patch_size",))
    patches = (vision.size("image", ("image_size",)) // patch) ** 2
    shuffled = ffn if "projector_input_dim" not in vision.table else vision.size("in", ("projector_input_dim",))
    out = vision.size("out", ("projector_output_dim",))
    front = vision.optional("channels", ("num_channels",), 3.0) * patch**2 * width + width + (patches + 1.0) * width
    blocks = vision.size("depth", ("num_hidden_layers",)) * _block(width, ffn)
    adapter = ffn * shuffled + out * out
    projector = vision.size("out", ("vision_output_dim",)) * config.size("hidden", ("hidden_size",))
    return _tower(front + blocks + 4.0 * width + adapter + projector)


def step_vision(hidden: float) -> Fields:
    """Step-3.7: the public class presets 47 blocks of width 1536 with layer scales, two stride-2 convolutions and a
    projector without bias; files state none of these sizes."""
    width, ffn = 1536.0, 8960.0
    blocks = 47.0 * (_block(width, ffn) + 2.0 * width)
    narrow = width * 2.0 * width * 9.0 + 2.0 * width
    wide = 2.0 * width * 4.0 * width * 9.0 + 4.0 * width
    front = 3.0 * 14.0**2 * width + 2704.0 * width + 2.0 * width
    return _tower(front + blocks + narrow + wide + 4.0 * width * hidden)
