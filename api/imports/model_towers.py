"""Parts of a Hugging Face model beside its language model: towers for images and sound, multi-token layers; and encoders
of images, whose tokens are patches.

Sources: the modules of huggingface/transformers, `src/transformers/models`, of the family named beside each formula.
"""

from typing import Any

from gpuplan.api.imports.facts import Origin, TrainingFacts
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.model_families import families, number
from gpuplan.api.imports.model_parameters import feed_forward, vision_tower

#: Image classes of ImageNet, for which most vision models are published.
_CLASSES = 1000
_AUDIO = ("audio_config", "audio_encoder_config", "thinker_config.audio_config")


def clip_rest(whole: Located) -> float:
    """CLIP's vision tower and the two projections into the shared space."""
    vision, text = whole.under("vision_config"), whole.under("text_config")
    shared = number(whole, "projection_dim", default=512)
    projections = shared * (number(vision, "hidden_size", default=768) + number(text, "hidden_size", default=512)) + 1
    return projections + _tower(vision)


def state_beside(part: Located, whole: Located, layer: float, facts: TrainingFacts) -> None:
    """Set apart towers and multi-token layers, which `parameters_total` leaves out; `layer` is the last one's size."""
    hidden = facts.whole("hidden_size") or 0
    two_towers = whole.get("model_type") in ("clip", "siglip", "siglip2", "chinese_clip", "align")
    vision = whole.get("vision_config")
    if isinstance(vision, dict) and vision and two_towers:
        facts.layers_differ = "it has a text and a vision tower"
    elif isinstance(vision, dict) and vision:
        tower = whole.under("vision_config")
        facts.beside["vision tower"] = _tower(tower) + _merger(tower)
        if str(whole.get("model_type")).startswith("llava"):
            facts.beside["projector"] = hidden * (_width(tower) + hidden + 2)
    audio = next((name for name in _AUDIO if isinstance(whole.get(name), dict)), "")
    if audio:
        facts.beside["audio tower"] = _audio_tower(whole.under(audio))
    extra = number(part, "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
    if extra:
        # DeepSeek-AI 2024, section 2.2: a layer like the last, a projection of two inputs, norms; embeddings are shared.
        facts.beside["multi-token layers"] = extra * (layer + 2 * hidden * hidden + 5 * hidden)
    if facts.beside:
        facts.notes.append(f"the plan is of the language model, without its {', '.join(facts.beside)}")


def _width(vision: Located) -> int:
    # Qwen2-VL: embed_dim is the tower's width, hidden_size that of the language model.
    return number(vision, "embed_dim", "hidden_size", "width", default=768)


def _feed_forward_width(vision: Located) -> int:
    ratio = vision.get("mlp_ratio")
    times = ratio if isinstance(ratio, int | float) and 0 < ratio < 100 else 4
    return number(vision, "intermediate_size", "mlp_dim") or int(times * _width(vision))


def _tower(vision: Located) -> float:
    hidden, patch = _width(vision), number(vision, "patch_size", default=14)
    image = number(vision, "image_size", default=0 if number(vision, "spatial_merge_size") else 224)
    layers = number(vision, "num_hidden_layers", "depth", "layers", default=12) + number(vision, "num_global_layers")
    return vision_tower(
        layers=layers,
        hidden=hidden,
        width=_feed_forward_width(vision),
        patch=patch,
        positions=(image // patch) ** 2 + 1 if image else number(vision, "num_position_embeddings"),
        # Qwen2.5-VL and Pixtral gate the layers of their towers.
        gated=vision.get("hidden_act") == "silu",
        channels=3 * number(vision, "temporal_patch_size", default=1),
    )


def _merger(vision: Located) -> float:
    """Qwen-VL: patches are joined and projected to the language model, for some layers too (Qwen3-VL's deepstack)."""
    merge = number(vision, "spatial_merge_size")
    if not merge:
        return 0.0
    joined = _width(vision) * merge * merge
    out = number(vision, "out_hidden_size", "hidden_size")
    layers = vision.get("deepstack_visual_indexes")
    times = 1 + (len(layers) if isinstance(layers, list) else 0)
    return times * (joined * joined + joined * out + joined + out)


def _audio_tower(audio: Located) -> float:
    """An encoder like Whisper's: two convolutions over mel bins, positions, layers."""
    hidden = number(audio, "d_model", "hidden_size", "encoder_hidden_dim", default=1280)
    layers = number(audio, "encoder_layers", "num_hidden_layers", default=32)
    width = number(audio, "encoder_ffn_dim", "intermediate_size") or 4 * hidden
    layer = 4 * hidden * hidden + feed_forward(hidden, width, gated=False, bias=True) + 7 * hidden
    convolutions = 3 * hidden * (number(audio, "num_mel_bins", default=128) + hidden)
    return layers * layer + convolutions + number(audio, "max_source_positions") * hidden


def waveform_features(part: Located, hidden: int) -> float:
    """wav2vec 2.0: convolutions over the waveform, a projection, and one grouped convolution for positions."""
    sizes, kernels = (_whole_numbers(part.get(name)) for name in ("conv_dim", "conv_kernel"))
    if len(sizes) != len(kernels) or not sizes:
        return 0.0
    before = (1, *sizes[:-1])
    features = sum(one * size * kernel for one, size, kernel in zip(before, sizes, kernels, strict=True))
    groups = number(part, "num_conv_pos_embedding_groups", default=16)
    positions = hidden * (hidden // groups) * number(part, "num_conv_pos_embeddings", default=128)
    return features + sizes[-1] * hidden + positions


def _whole_numbers(value: Any) -> tuple[int, ...]:
    listed = value if isinstance(value, list) and len(value) < 100 else []
    return tuple(one for one in listed if isinstance(one, int) and not isinstance(one, bool) and 0 < one < 10**6)


def vision_encoder(part: Located, kind: str, facts: TrainingFacts) -> bool:
    """State an encoder of images: patches are its tokens, and classes its vocabulary; False for every other model."""
    image, patch = number(part, "image_size"), number(part, "patch_size")
    one_family = not families(kind).has_head and kind not in ("clip", "siglip")
    if not (one_family and image and patch and facts.whole("layers")) or "vocabulary_size" in facts.facts:
        return False
    labels = part.get("id2label")
    classes = len(labels) if isinstance(labels, dict) and labels else _CLASSES
    patches = (image // patch) ** 2 + 1
    facts.training_length = patches
    facts.put("ffn_size", _feed_forward_width(part), part.at("mlp_ratio", because="mlp_ratio x width"))
    head = part.at("id2label") if labels else Origin(default_of="gpuplan: the classes of ImageNet")
    facts.put("vocabulary_size", classes, head)
    facts.put("parameters_total", round(_tower(part) + classes * (_width(part) + 1)), part.at("hidden_size"))
    facts.notes.append(f"a sample is an image of {patches} tokens, its patches")
    return True
