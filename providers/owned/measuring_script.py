"""Measure one machine's accelerator with PyTorch; a standalone script for any interpreter with torch.

It imports nothing of gpuplan, so that it runs where the user's torch is installed. Each line it prints is a JSON object:
{"progress": ...} during the run, and at the end {"result": ...}, or {"error": ...} with exit code 1. Rates are medians over
repeated batches of work: the sustained rate, not the best moment.
"""

import argparse
import importlib
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

#: Sides of the square matrices, and the minimum device memory in GiB for the larger ones.
MATMUL_SIZES = ((1024, 0), (2048, 0), (4096, 2), (8192, 6), (16384, 40))
#: On a processor only the arithmetic is tested, not the rate.
MATMUL_SIZES_SMALL = ((64, 0), (128, 0))
COPY_BYTES, COPY_BYTES_SMALL = 1 << 30, 1 << 20
#: Shares of the time: matmuls; copies in memory, to the host and to a neighbour; the two training steps.
SHARES = {"matmul": 0.4, "copies": 0.2, "steps": 0.4}
#: Number of batches for the median; the first ones warm up caches, clocks and kernel choice.
BATCHES, WARM_UP = 5, 2
DTYPES = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8": "float8_e4m3fn"}
#: Precisions of the training steps, best first; the first supported one is used.
STEP_PRECISIONS = ("bf16", "fp16", "fp32")
#: Device memory in GiB, and the step of a causal language model that fits easily.
TRANSFORMERS = (
    (20, {"batch": 8, "layers": 4, "hidden_size": 2048, "attention_heads": 16, "sequence_length": 1024}),
    (0, {"batch": 4, "layers": 4, "hidden_size": 1024, "attention_heads": 16, "sequence_length": 512}),
)
TRANSFORMER_SMALL = {"batch": 2, "layers": 2, "hidden_size": 64, "attention_heads": 2, "sequence_length": 32}
VOCABULARY, VOCABULARY_SMALL = 32768, 128
#: Memory in GiB, and images of 224 pixels per step of ResNet-50.
IMAGES = ((20, 128), (7, 48), (0, 16))
#: Blocks of each stage of ResNet-50 and their width (He 2015, table 1).
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


class Bench:
    """One device of torch, with timing."""

    def __init__(self, torch: Any, device: str) -> None:
        """On `device` (cuda, or cpu in tests); ROCm builds of torch call their devices cuda too."""
        self.torch, self.small = torch, device == "cpu"
        self.device = torch.device(device if self.small else "cuda:0")
        self.memory_gib = 0.0 if self.small else torch.cuda.get_device_properties(0).total_memory / (1 << 30)

    def wait(self) -> None:
        """Wait until all devices are idle."""
        if not self.small:
            for index in range(self.torch.cuda.device_count()):
                self.torch.cuda.synchronize(index)

    def seconds(self, work: Callable[[], object], budget: float) -> float:
        """Median seconds of one call of `work`, over batches that fill `budget` seconds in all."""
        for _ in range(WARM_UP):
            single_run_seconds = self._timed(work, 1)
        repeats = max(1, math.floor(budget / (BATCHES + 1) / max(single_run_seconds, 1e-7)))
        repeats = min(repeats, 100_000)
        self._timed(work, repeats)
        return statistics.median(self._timed(work, repeats) / repeats for _ in range(BATCHES))

    def _timed(self, work: Callable[[], object], repeats: int) -> float:
        self.wait()
        began = time.perf_counter()
        for _ in range(repeats):
            work()
        self.wait()
        return time.perf_counter() - began

    def dtype(self, precision: str) -> Any:
        """torch's type for a precision; tf32 is float32 with rounded products, which this enables."""
        self.torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        return getattr(self.torch, DTYPES[precision])


def matmul_tflops(size: int, seconds: float) -> float:
    """TFLOP/s of one product of two square matrices: 2 n^3 operations."""
    return 2.0 * size**3 / seconds / 1e12


def matmuls(bench: Bench, precisions: list[str], budget: float) -> tuple[dict[str, dict[str, float]], list[str]]:
    """TFLOP/s by precision and size; and a note for each precision that this torch does not support."""
    sizes = MATMUL_SIZES_SMALL if bench.small else MATMUL_SIZES
    fitting = [size for size, least in sizes if bench.memory_gib >= least]
    rates: dict[str, dict[str, float]] = {}
    notes = []
    for precision in precisions:
        tell(f"matrix products in {precision}")
        try:
            seconds_per_size = budget / len(precisions) / len(fitting)
            rates[precision] = {str(size): matmul_rate(bench, precision, size, seconds_per_size) for size in fitting}
        except (RuntimeError, AttributeError, TypeError, ValueError) as error:
            notes.append(f"{precision} was not measured: {str(error).splitlines()[0][:120]}")
    return rates, notes


def matmul_rate(bench: Bench, precision: str, size: int, budget: float) -> float:
    """TFLOP/s of square products of `size` in `precision`."""
    torch, dtype = bench.torch, bench.dtype(precision)
    left, right = (torch.randn(size, size, device=bench.device) for _ in range(2))
    if precision == "fp8":
        left, right, one = left.to(dtype), right.to(dtype).t(), torch.ones((), device=bench.device)
        scales = {"scale_a": one, "scale_b": one, "out_dtype": torch.bfloat16}
        return matmul_tflops(size, bench.seconds(lambda: torch._scaled_mm(left, right, **scales), budget))
    left, right = left.to(dtype), right.to(dtype)
    return matmul_tflops(size, bench.seconds(lambda: torch.mm(left, right), budget))


def copies(bench: Bench, budget: float) -> dict[str, float | None]:
    """GB/s within device memory (read plus written), from pinned host memory, and to a neighbour if there is one."""
    torch = bench.torch
    size = COPY_BYTES_SMALL if bench.small else min(COPY_BYTES, int(bench.memory_gib * (1 << 30) / 8))
    tell("memory bandwidth")
    source = torch.zeros(size, dtype=torch.uint8, device=bench.device)
    target = torch.empty_like(source)
    memory = 2.0 * size / bench.seconds(lambda: target.copy_(source), budget / 3) / 1e9
    bandwidths: dict[str, float | None] = {"memory_gbs": memory, "host_gbs": None, "peer_gbs": None}
    if bench.small:
        return bandwidths
    tell("bandwidth to the host and to other devices")
    part = min(size, 1 << 28)
    pinned = torch.zeros(part, dtype=torch.uint8, pin_memory=True)
    seconds = bench.seconds(lambda: target[:part].copy_(pinned, non_blocking=True), budget / 3)
    bandwidths["host_gbs"] = part / seconds / 1e9
    if torch.cuda.device_count() > 1:
        peer = torch.empty(part, dtype=torch.uint8, device="cuda:1")
        seconds = bench.seconds(lambda: peer.copy_(source[:part], non_blocking=True), budget / 3)
        bandwidths["peer_gbs"] = part / seconds / 1e9
    return bandwidths


def transformer_step(bench: Bench, precision: str, budget: float) -> dict[str, Any]:
    """Seconds of an optimizer step of a small causal language model: autocast, fused attention and AdamW."""
    tell(f"a training step of a transformer in {precision}")
    choices = TRANSFORMERS if not bench.small else ((0, TRANSFORMER_SMALL),)
    size = next(size for least, size in choices if bench.memory_gib >= least)
    vocabulary = VOCABULARY_SMALL if bench.small else VOCABULARY
    weights = transformer_weights(bench, vocabulary, size["hidden_size"], size["layers"])
    shape = (size["batch"], size["sequence_length"] + 1)
    tokens = bench.torch.randint(0, vocabulary, shape, device=bench.device)
    optimizer = bench.torch.optim.AdamW(weights.values(), lr=1e-4, fused=not bench.small)

    def loss() -> Any:
        return language_loss(bench.torch, weights, tokens, size["layers"], size["attention_heads"])

    seconds = bench.seconds(training_step(bench, precision, loss, optimizer), budget)
    ffn = 4 * size["hidden_size"]
    result = {"precision": precision, "seconds": seconds, "parameters": parameters(weights)}
    return result | size | {"ffn_size": ffn, "vocabulary_size": vocabulary}


def transformer_weights(bench: Bench, vocabulary: int, hidden: int, layers: int) -> dict[str, Any]:
    """Weights of pre-norm blocks with a plain feed-forward of four times the width; embeddings are tied."""
    shapes: dict[str, tuple[int, ...]] = {"embedding": (vocabulary, hidden)}
    for layer in range(layers):
        shapes |= {f"qkv{layer}": (3 * hidden, hidden), f"out{layer}": (hidden, hidden)}
        shapes |= {f"up{layer}": (4 * hidden, hidden), f"down{layer}": (hidden, 4 * hidden)}
        shapes |= {f"norm{layer}": (hidden,), f"norm_mlp{layer}": (hidden,)}
    return {name: weight(bench, shape) for name, shape in shapes.items()}


def weight(bench: Bench, shape: tuple[int, ...]) -> Any:
    """A trainable array in float32: small random values, or ones where it scales channels."""
    if len(shape) == 1:
        return bench.torch.ones(shape, device=bench.device, requires_grad=True)
    values = bench.torch.randn(shape, device=bench.device) * 0.02
    if len(shape) == 4:
        values = values.to(memory_format=bench.torch.channels_last)
    return values.requires_grad_()


def parameters(weights: dict[str, Any]) -> int:
    """The total number of parameters, which identifies the model in the result."""
    return sum(weight.numel() for weight in weights.values())


def language_loss(torch: Any, weights: dict[str, Any], tokens: Any, layers: int, heads: int) -> Any:
    """Cross entropy of the next token."""
    functional = torch.nn.functional
    hidden = functional.embedding(tokens[:, :-1], weights["embedding"])
    batch, length, width = hidden.shape
    for layer in range(layers):
        normed = functional.layer_norm(hidden, (width,), weights[f"norm{layer}"])
        parts = functional.linear(normed, weights[f"qkv{layer}"]).view(batch, length, 3, heads, width // heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + functional.linear(mixed.transpose(1, 2).reshape(batch, length, width), weights[f"out{layer}"])
        normed = functional.layer_norm(hidden, (width,), weights[f"norm_mlp{layer}"])
        up = functional.gelu(functional.linear(normed, weights[f"up{layer}"]))
        hidden = hidden + functional.linear(up, weights[f"down{layer}"])
    logits = functional.linear(hidden, weights["embedding"])
    return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].reshape(-1))


def convolution_step(bench: Bench, precision: str, budget: float) -> dict[str, Any]:
    """Seconds of an optimizer step of ResNet-50 on random images: autocast, channels last, SGD with momentum."""
    tell(f"a training step of a convolutional network in {precision}")
    torch = bench.torch
    # As in training scripts: let cuDNN try its kernels on the first step.
    torch.backends.cudnn.benchmark = True
    batch, side = (2, 32) if bench.small else (next(n for least, n in IMAGES if bench.memory_gib >= least), 224)
    weights = resnet_weights(bench)
    images = torch.randn(batch, 3, side, side, device=bench.device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,), device=bench.device)
    optimizer = torch.optim.SGD(list(weights.values()), lr=1e-3, momentum=0.9)

    def loss() -> Any:
        return torch.nn.functional.cross_entropy(resnet(torch, weights, images), labels)

    seconds = bench.seconds(training_step(bench, precision, loss, optimizer), budget)
    result = {"precision": precision, "seconds": seconds, "parameters": parameters(weights)}
    return result | {"batch": batch, "image_size": side}


def resnet_weights(bench: Bench) -> dict[str, Any]:
    """Weights of ResNet-50: each convolution with the scale and shift of its normalisation, and the classifier."""
    shapes: dict[str, tuple[int, ...]] = {"stem": (64, 3, 7, 7), "classes": (1000, 2048), "bias": (1000,)}
    inside = 64
    for stage, (blocks, width) in enumerate(STAGES):
        for block in range(blocks):
            name = f"{stage}.{block}"
            shapes |= {f"{name}.in": (width, inside, 1, 1), f"{name}.mid": (width, width, 3, 3)}
            shapes |= {f"{name}.out": (4 * width, width, 1, 1)}
            if block == 0:
                shapes |= {f"{name}.skip": (4 * width, inside, 1, 1)}
            inside = 4 * width
    norms = {
        f"{name}.{part}": shape[:1] for name, shape in shapes.items() if len(shape) == 4 for part in ("scale", "shift")
    }
    return {name: weight(bench, shape) for name, shape in (shapes | norms).items()}


def resnet(torch: Any, weights: dict[str, Any], images: Any) -> Any:
    """The class scores."""
    functional = torch.nn.functional
    activations = functional.max_pool2d(functional.relu(convolved(functional, weights, "stem", images, 2)), 3, 2, 1)
    for stage, (blocks, _) in enumerate(STAGES):
        for block in range(blocks):
            name, stride = f"{stage}.{block}", 2 if stage and not block else 1
            inner = functional.relu(convolved(functional, weights, f"{name}.in", activations, 1))
            inner = functional.relu(convolved(functional, weights, f"{name}.mid", inner, stride))
            inner = convolved(functional, weights, f"{name}.out", inner, 1)
            skipped = activations if block else convolved(functional, weights, f"{name}.skip", activations, stride)
            activations = functional.relu(inner + skipped)
    return functional.linear(activations.mean((2, 3)), weights["classes"], weights["bias"])


def convolved(functional: Any, weights: dict[str, Any], name: str, images: Any, stride: int) -> Any:
    """A convolution of odd width and its batch normalisation."""
    kernel = weights[name]
    out = functional.conv2d(images, kernel, stride=stride, padding=kernel.shape[-1] // 2)
    shift, scale = weights[f"{name}.shift"], weights[f"{name}.scale"]
    return functional.batch_norm(out, None, None, scale, shift, training=True)


def training_step(bench: Bench, precision: str, loss: Callable[[], Any], optimizer: Any) -> Callable[[], None]:
    """Forward, backward and update under autocast; float16 gradients are small in this model, so there is no loss scaling."""
    torch, dtype = bench.torch, bench.dtype(precision)
    mixed = precision in {"fp16", "bf16"}

    def step() -> None:
        with torch.autocast(bench.device.type, dtype=dtype if mixed else torch.bfloat16, enabled=mixed):
            loss_value = loss()
        loss_value.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def measure(bench: Bench, precisions: list[str], seconds: float) -> dict[str, Any]:
    """All measurements, in about `seconds`; `notes` lists what this device or torch does not support."""
    rates, notes = matmuls(bench, precisions, seconds * SHARES["matmul"])
    measured: dict[str, Any] = {"matmul_tflops": rates} | copies(bench, seconds * SHARES["copies"])
    best = next((name for name in STEP_PRECISIONS if name in rates), None)
    for name, step in (("transformer", transformer_step), ("convolution", convolution_step)):
        measured[name] = None
        if best is None:
            continue
        try:
            measured[name] = step(bench, best, seconds * SHARES["steps"] / 2)
        except RuntimeError as error:
            notes.append(f"the {name} step did not run: {str(error).splitlines()[0][:120]}")
        if not bench.small:
            bench.torch.cuda.empty_cache()
    return measured | {"notes": notes, "torch": bench.torch.__version__}


def tell(what: str) -> None:
    """Report the current measurement."""
    sys.stdout.write(json.dumps({"progress": what}) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Measure according to the arguments, and print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--precisions", required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    answer: dict[str, Any]
    try:
        torch = importlib.import_module("torch")
        if given.device == "cuda" and not torch.cuda.is_available():
            raise RuntimeError(f"torch {torch.__version__} sees no GPU: it is a build for processors, or has no driver")
        answer = {"result": measure(Bench(torch, given.device), given.precisions.split(","), given.seconds)}
    except (ImportError, RuntimeError) as error:
        answer = {"error": str(error).strip().split("\n", 1)[0][:300] or type(error).__name__}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main())
