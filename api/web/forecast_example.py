"""The example forecast of the page: a small laboratory over three years."""

EXAMPLE = """\
name: small lab
horizon_years: 3
electricity_usd_per_kwh: 0.28
limits:
  upfront_usd: 40000
machines: [RTX 5090, RTX PRO 6000 Blackwell]
prices:
  - {accelerator: RTX PRO 6000 Blackwell, usd: 8200}
jobs:
  - job:
      name: vision
      workload: {kind: preset, model: resnet-50, samples: 115M}
      deadline: 5d
      constraints: {price_kinds: [on_demand]}
    per_month: {low: 4, expected: 12, high: 25}
  - job:
      name: fine-tunes
      workload: {kind: preset, model: qwen2.5-7b, tokens: 200M}
      training: {method: lora}
      deadline: 3d
      constraints: {price_kinds: [on_demand]}
    per_month: 20
"""
