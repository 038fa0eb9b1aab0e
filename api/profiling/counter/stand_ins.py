"""Replacements for operations whose implementation depends on the device.

Attention counts as a fused kernel: its products (half of them with a causal mask), and query, key, value and result
moved through memory. A recurrent layer runs over all its steps at once, with the same products, element-wise work and
memory traffic; its length is recorded as sequential steps.
"""

from __future__ import annotations

from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
from torch import _VF  # type: ignore[attr-defined, import-not-found, unused-ignore]

from .traffic import Traffic

#: Passes of the scores through memory without fusion: write, softmax, dropout, read forward (6), backward 8.
_SCORE_PASSES_FORWARD, _SCORE_PASSES_BACKWARD = 6, 8
_HALF = 2.0


class StandIns:
    """Installs the replacements in torch's namespaces; `counting` is where they are counted, if anywhere."""

    def __init__(self) -> None:
        self.counting: Traffic | None = None
        functional = torch.nn.functional
        self._attention = functional.scaled_dot_product_attention
        functional.scaled_dot_product_attention = self._attend
        for name, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
            setattr(_VF, name, self._recurrence(getattr(_VF, name), name, gates))

    def _attend(self, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        if self.counting is None:
            return self._attention(query, key, value, *args, **kwargs)
        names = ("attn_mask", "dropout_p", "is_causal")
        given = dict(zip(names, args, strict=False)) | kwargs
        share = 0.5 if given.get("is_causal") else 1.0
        return _Attention.apply(query, key, value, (share, self.counting))

    def _recurrence(self, original: Any, name: str, gates: int) -> Any:
        def stand_in(*args: Any) -> Any:
            if self.counting is None or not _is_padded(name, args):
                return original(*args)
            return _all_steps_together(self.counting, name, gates, *args)

        return stand_in


class _Attention(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """softmax(Q K^T) V: two products forward, four backward, without the recomputation of a fused kernel."""

    @staticmethod
    def forward(context: Any, query: Any, key: Any, value: Any, how: tuple[float, Traffic]) -> Any:
        share, traffic = how
        heads = query.shape[:-2].numel()
        scores = heads * query.shape[-2] * key.shape[-2]
        if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
            raise ValueError(
                f"attention of query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
            )
        context.flops = 2.0 * scores * (query.shape[-1] + value.shape[-1]) * share
        context.scores, context.traffic = scores, traffic
        traffic.paused = True
        result = query.new_zeros(*query.shape[:-1], value.shape[-1])
        statistics = query.new_zeros(*query.shape[:-1], 2)
        traffic.paused = False
        context.save_for_backward(query, key, value, result, statistics)
        context.moved = _HALF * (query.numel() + key.numel() + value.numel() + result.numel())
        traffic.attention_flops += context.flops
        traffic.attention_scores += scores
        traffic.add(moved=context.moved, scores_moved=_SCORE_PASSES_FORWARD * _HALF * scores)
        return result

    @staticmethod
    def backward(context: Any, *_gradients: Any) -> Any:
        query, key, value, _, _ = context.saved_tensors
        traffic = context.traffic
        traffic.attention_flops += 2 * context.flops
        moved = 2 * context.moved
        traffic.add(moved=moved, scores_moved=_SCORE_PASSES_BACKWARD * _HALF * context.scores, kernels=2)
        traffic.paused = True
        gradients = tuple(torch.zeros_like(tensor) if tensor.requires_grad else None for tensor in (query, key, value))
        traffic.paused = False
        return (*gradients, None)


def _is_padded(name: str, args: tuple[Any, ...]) -> bool:
    """Whether the arguments are a padded batch; packed sequences and projections are not replaced."""
    states = args[1] if name == "lstm" else [args[1]]
    weights = args[2]
    plain = isinstance(states, (tuple, list)) and isinstance(weights, (tuple, list))
    if not plain or states[0].dim() != 3:
        return False
    _, has_bias, layers, _, _, bidirectional, _ = args[2:9]
    return bool(len(weights) == layers * (2 if bidirectional else 1) * (4 if has_bias else 2))


def _all_steps_together(traffic: Traffic, name: str, gates: int, *args: Any) -> Any:
    data, states, weights, has_bias, layers, _, _, bidirectional, batch_first = args[:9]
    directions = 2 if bidirectional else 1
    per_layer = 4 if has_bias else 2
    steps = data.shape[1] if batch_first else data.shape[0]
    traffic.recurrence_steps += steps + layers - 1
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            first = (layer * directions + direction) * per_layer
            outputs.append(_layer(traffic, name, gates, data, list(weights[first : first + per_layer])))
        data = outputs[0] if directions == 1 else torch.cat(outputs, dim=-1)
    last = data.select(1 if batch_first else 0, steps - 1)[..., : weights[1].shape[1]]
    ends = last.unsqueeze(0).expand(layers * directions, *last.shape)
    return (data, ends, ends) if name == "lstm" and isinstance(states, (tuple, list)) else (data, ends)


def _layer(traffic: Traffic, name: str, gates: int, data: Any, weights: list[Any]) -> Any:
    """One direction of one layer: products of the inputs and of the previous states, then the cell."""
    width = weights[1].shape[1]
    traffic.paused = True
    before = data.new_zeros(*data.shape[:-1], width).requires_grad_()
    cell = data.new_zeros(*data.shape[:-1], width).requires_grad_()
    traffic.paused = False
    inputs = torch.nn.functional.linear(data, weights[0], *weights[2:3])
    recurrent = torch.nn.functional.linear(before, weights[1], *weights[3:4])
    if name == "lstm":
        enter, forget, new, leave = (inputs + recurrent).chunk(gates, dim=-1)
        cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
        return leave.sigmoid() * cell.tanh()
    if name == "gru":
        (reset, update, new), (reset_, update_, new_) = inputs.chunk(gates, dim=-1), recurrent.chunk(gates, dim=-1)
        keep = (update + update_).sigmoid()
        return (new + (reset + reset_).sigmoid() * new_).tanh() * (1 - keep) + keep * before
    return (inputs + recurrent).tanh() if name == "rnn_tanh" else (inputs + recurrent).relu()
