"""Count networks for `planner/workload/counted_models.csv`: `python tools/count_networks.py [NAME...]`.

Prints parameters, forward FLOPs (2 per multiply-add of matrices, convolutions and attention) and outputs of matrix and
convolution layers of one sample, in millions. Needs torch with torchvision, transformers, diffusers and ultralytics; their
modules are built from the published configurations, without weights.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
from torch.utils.flop_counter import FlopCounterMode  # type: ignore[import-not-found, unused-ignore]

Built = tuple[Any, tuple[Any, ...], dict[str, Any]]


def _image(size: int) -> Any:
    return torch.zeros(1, 3, size, size)


def _torchvision(name: str, size: int, **options: Any) -> Callable[[], Built]:
    def build() -> Built:
        from torchvision.models import get_model  # type: ignore[import-not-found, unused-ignore]

        return get_model(name, weights=None, **options), (_image(size),), {}

    return build


def _detector(name: str, height: int, width: int) -> Callable[[], Built]:
    def build() -> Built:
        from torchvision.models import get_model  # type: ignore[import-not-found, unused-ignore]

        model = get_model(name, weights=None, weights_backbone=None)
        if hasattr(model.transform, "min_size") and height == 800:
            model.transform.min_size, model.transform.max_size = (800,), 1333
        return model, ([torch.zeros(3, height, width)],), {}

    return build


def _yolo(name: str) -> Callable[[], Built]:
    def build() -> Built:
        from ultralytics.nn.tasks import DetectionModel  # type: ignore[import-not-found, unused-ignore]

        return DetectionModel(f"{name}.yaml", verbose=False), (_image(640),), {}

    return build


class _AnchorHead(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """The head of the first YOLOv5: one 1x1 convolution per scale, to 3 anchors of 80 classes and 5 numbers."""

    def __init__(self, detect: Any) -> None:
        super().__init__()
        self.i, self.f, self.type = detect.i, detect.f, "head"
        inputs = [branch[0].conv.in_channels for branch in detect.cv2]
        self.m = torch.nn.ModuleList(torch.nn.Conv2d(channels, 3 * 85, 1) for channels in inputs)

    def forward(self, scales: list[Any]) -> list[Any]:
        return [convolution(scale) for convolution, scale in zip(self.m, scales, strict=True)]


def _yolov5(size: str) -> Callable[[], Built]:
    def build() -> Built:
        model, inputs, named = _yolo(f"yolov5{size}")()
        model.model[-1] = _AnchorHead(model.model[-1])
        return model, inputs, named

    return build


def _clip(vision: dict[str, int], text: dict[str, int], projection: int, size: int) -> Callable[[], Built]:
    def build() -> Built:
        from transformers import CLIPConfig, CLIPModel  # type: ignore[import-not-found, unused-ignore]

        config = CLIPConfig(text_config=text, vision_config=vision | {"image_size": size}, projection_dim=projection)
        config._attn_implementation = "sdpa"
        ids = torch.zeros(1, 77, dtype=torch.long)
        return CLIPModel(config), (), {"input_ids": ids, "pixel_values": _image(size)}

    return build


def _siglip(vision: dict[str, int], text: dict[str, int], size: int) -> Callable[[], Built]:
    def build() -> Built:
        from transformers import SiglipConfig, SiglipModel  # type: ignore[import-not-found, unused-ignore]

        config = SiglipConfig(text_config=text, vision_config=vision | {"image_size": size})
        ids = torch.zeros(1, 64, dtype=torch.long)
        return SiglipModel(config), (), {"input_ids": ids, "pixel_values": _image(size)}

    return build


def _sam(layers: int, width: int, heads: int, globals_: tuple[int, ...]) -> Callable[[], Built]:
    def build() -> Built:
        from transformers import SamConfig, SamModel  # type: ignore[import-not-found, unused-ignore]

        vision = {
            "num_hidden_layers": layers,
            "hidden_size": width,
            "num_attention_heads": heads,
            "global_attn_indexes": list(globals_),
            "mlp_dim": 4 * width,
        }
        points = torch.zeros(1, 1, 1, 2)
        return SamModel(SamConfig(vision_config=vision)), (), {"pixel_values": _image(1024), "input_points": points}

    return build


def _flux() -> Built:
    from diffusers import FluxTransformer2DModel  # type: ignore[import-not-found, unused-ignore]

    model = FluxTransformer2DModel(guidance_embeds=True)
    return (
        model,
        (),
        {
            "hidden_states": torch.zeros(1, 4096, 64),
            "encoder_hidden_states": torch.zeros(1, 512, 4096),
            "pooled_projections": torch.zeros(1, 768),
            "timestep": torch.zeros(1),
            "guidance": torch.zeros(1),
            "img_ids": torch.zeros(4096, 3),
            "txt_ids": torch.zeros(512, 3),
        },
    )


def _sd3(
    layers: int, heads: int, positions: int, dual: tuple[int, ...] = (), norm: str | None = None
) -> Callable[[], Built]:
    def build() -> Built:
        from diffusers import SD3Transformer2DModel  # type: ignore[import-not-found, unused-ignore]

        model = SD3Transformer2DModel(
            sample_size=128,
            num_layers=layers,
            num_attention_heads=heads,
            attention_head_dim=64,
            in_channels=16,
            out_channels=16,
            joint_attention_dim=4096,
            caption_projection_dim=64 * heads,
            pooled_projection_dim=2048,
            pos_embed_max_size=positions,
            dual_attention_layers=dual,
            qk_norm=norm,
        )
        return (
            model,
            (),
            {
                "hidden_states": torch.zeros(1, 16, 128, 128),
                "encoder_hidden_states": torch.zeros(1, 333, 4096),
                "pooled_projections": torch.zeros(1, 2048),
                "timestep": torch.zeros(1),
            },
        )

    return build


def _wan(layers: int, heads: int, ffn: int, height: int, width: int) -> Callable[[], Built]:
    def build() -> Built:
        from diffusers import WanTransformer3DModel  # type: ignore[import-not-found, unused-ignore]

        model = WanTransformer3DModel(num_layers=layers, num_attention_heads=heads, ffn_dim=ffn)
        return (
            model,
            (),
            {
                "hidden_states": torch.zeros(1, 16, 21, height // 8, width // 8),
                "encoder_hidden_states": torch.zeros(1, 512, 4096),
                "timestep": torch.zeros(1, dtype=torch.long),
            },
        )

    return build


def _dit(layers: int, heads: int, head_size: int, size: int) -> Callable[[], Built]:
    def build() -> Built:
        from diffusers import DiTTransformer2DModel  # type: ignore[import-not-found, unused-ignore]

        model = DiTTransformer2DModel(
            num_layers=layers,
            num_attention_heads=heads,
            attention_head_dim=head_size,
            sample_size=size // 8,
            out_channels=8,
        )
        return (
            model,
            (),
            {
                "hidden_states": torch.zeros(1, 4, size // 8, size // 8),
                "timestep": torch.zeros(1, dtype=torch.long),
                "class_labels": torch.zeros(1, dtype=torch.long),
            },
        )

    return build


def _pixart() -> Built:
    from diffusers import PixArtTransformer2DModel  # type: ignore[import-not-found, unused-ignore]

    model = PixArtTransformer2DModel(sample_size=128, caption_channels=4096)
    conditions = {"resolution": torch.zeros(1, 2), "aspect_ratio": torch.zeros(1, 1)}
    return (
        model,
        (),
        {
            "hidden_states": torch.zeros(1, 4, 128, 128),
            "encoder_hidden_states": torch.zeros(1, 300, 4096),
            "timestep": torch.zeros(1, dtype=torch.long),
            "added_cond_kwargs": conditions,
        },
    )


_VIT_B = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}
_VIT_L = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16}
_VIT_H = {"hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32, "num_attention_heads": 16}
_SO = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16}
_TEXT_B = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 8}
_TEXT_L = _VIT_B
_TEXT_H = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16}

NETWORKS: dict[str, Callable[[], Built]] = {
    **{f"yolov5{size}": _yolov5(size) for size in "nsmlx"},
    **{
        f"{name}{size}": _yolo(f"{name}{size}")
        for name, sizes in (
            ("yolov8", "nsmlx"),
            ("yolov9", "ce"),
            ("yolov10", "nsmblx"),
            ("yolo11", "nsmlx"),
        )
        for size in sizes
    },
    "faster-rcnn": _detector("fasterrcnn_resnet50_fpn", 800, 1216),
    "faster-rcnn-v2": _detector("fasterrcnn_resnet50_fpn_v2", 800, 1216),
    "mask-rcnn-v2": _detector("maskrcnn_resnet50_fpn_v2", 800, 1216),
    "retinanet-resnet50": _detector("retinanet_resnet50_fpn", 800, 1216),
    "fcos": _detector("fcos_resnet50_fpn", 800, 1216),
    "ssd300-vgg16": _detector("ssd300_vgg16", 300, 300),
    "ssdlite320": _detector("ssdlite320_mobilenet_v3_large", 320, 320),
    "deeplabv3-resnet50": _torchvision("deeplabv3_resnet50", 520, aux_loss=True, weights_backbone=None),
    "deeplabv3-resnet101": _torchvision("deeplabv3_resnet101", 520, aux_loss=True, weights_backbone=None),
    "fcn-resnet50": _torchvision("fcn_resnet50", 520, aux_loss=True, weights_backbone=None),
    "alexnet": _torchvision("alexnet", 224),
    "vgg-19": _torchvision("vgg19", 224),
    "mobilenet-v3-small": _torchvision("mobilenet_v3_small", 224),
    "squeezenet": _torchvision("squeezenet1_1", 224),
    "shufflenet-v2": _torchvision("shufflenet_v2_x1_0", 224),
    "densenet-201": _torchvision("densenet201", 224),
    "swinv2-tiny": _torchvision("swin_v2_t", 256),
    "swinv2-base": _torchvision("swin_v2_b", 256),
    "clip-vit-b/32": _clip(_VIT_B | {"patch_size": 32}, _TEXT_B, 512, 224),
    "clip-vit-b/16": _clip(_VIT_B | {"patch_size": 16}, _TEXT_B, 512, 224),
    "clip-vit-l/14": _clip(_VIT_L | {"patch_size": 14}, _TEXT_L, 768, 224),
    "clip-vit-h/14": _clip(_VIT_H | {"patch_size": 14}, _TEXT_H, 1024, 224),
    "siglip-base": _siglip(_VIT_B | {"patch_size": 16}, _VIT_B, 224),
    "siglip-large": _siglip(_VIT_L | {"patch_size": 16}, _VIT_L, 256),
    "siglip-so400m": _siglip(_SO | {"patch_size": 14}, _SO, 384),
    "sam-vit-b": _sam(12, 768, 12, (2, 5, 8, 11)),
    "sam-vit-l": _sam(24, 1024, 16, (5, 11, 17, 23)),
    "sam-vit-h": _sam(32, 1280, 16, (7, 15, 23, 31)),
    "flux.1-dev": _flux,
    "sd3-medium": _sd3(24, 24, 192),
    "sd3.5-medium": _sd3(24, 24, 384, tuple(range(13)), "rms_norm"),
    "sd3.5-large": _sd3(38, 38, 192, (), "rms_norm"),
    "wan2.1-1.3b": _wan(30, 12, 8960, 480, 832),
    "wan2.1-14b": _wan(40, 40, 13824, 480, 832),
    "dit-xl/2": _dit(28, 16, 72, 256),
    "pixart-sigma": _pixart,
}

_LAYERS = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)


def count(build: Callable[[], Built], device: str) -> tuple[float, float, float]:
    """Parameters, forward FLOPs and outputs of the matrix and convolution layers of one sample."""
    with torch.device(device):
        model, inputs, named = build()
    model.eval().requires_grad_(False)
    outputs = 0

    def add(module: Any, given: Any, output: Any) -> None:
        nonlocal outputs
        outputs += output.numel()

    for module in model.modules():
        if isinstance(module, _LAYERS):
            module.register_forward_hook(add)
    flops = FlopCounterMode(display=False)
    with torch.no_grad(), flops:
        model(*inputs, **named)
    return sum(parameter.numel() for parameter in model.parameters()), flops.get_total_flops(), outputs


def main(names: list[str]) -> None:
    """Print one line for each of `names`, or for every network."""
    for name in names or NETWORKS:
        try:
            parameters, flops, outputs = count(NETWORKS[name], "meta")
        except (NotImplementedError, RuntimeError):
            # Detectors choose boxes by their values, which the meta device does not have.
            parameters, flops, outputs = count(NETWORKS[name], "cpu")
        print(f"{name},{parameters:.0f},{flops / 1e9:.4g},{outputs / 1e6:.4g}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
