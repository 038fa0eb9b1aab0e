"""The example portfolio of the page: four jobs, a quota and a budget."""

EXAMPLE = """\
name: autumn
slot: 1h
budget_usd: 5000
quotas:
  - {provider: aws, accelerators: 16}
jobs:
  - name: llama-3-8b-lora
    workload: {kind: preset, model: llama-3-8b, tokens: 500M, sequence_length: 4096}
    training: {method: lora, precision: bf16}
    deadline: 24h
    constraints: {max_nodes: 4}
  - name: bert-large
    workload: {kind: preset, model: bert-large, tokens: 30B, sequence_length: 512}
    deadline: 3d
    constraints: {max_nodes: 4, providers: [aws]}
  - name: resnet-50
    workload: {kind: preset, model: resnet-50, samples: 100M, image_size: 224}
    release: 6h
    deadline: 24h
    constraints: {max_nodes: 2, providers: [aws, azure]}
  - name: gpt2-if-there-is-room
    workload: {kind: preset, model: gpt2, tokens: 20B}
    deadline: 60h
    value: 400
    constraints: {max_nodes: 2}
"""
