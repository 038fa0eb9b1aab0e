"""Small configurations in the formats of other tools, written for these tests."""

LLAMA_FACTORY = """model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
finetuning_type: lora
lora_rank: 8
dataset: mine
cutoff_len: 1024
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
num_train_epochs: 2
bf16: true
"""
TRAINER = """{
  "model_name_or_path": "Qwen/Qwen3-8B", "output_dir": "out", "num_train_epochs": 3, "max_steps": 500,
  "per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "max_seq_length": 2048, "fp16": true
}
"""
AXOLOTL = """base_model: Qwen/Qwen3-8B
datasets:
  - path: data.jsonl
    type: alpaca
sequence_len: 2048
micro_batch_size: 2
gradient_accumulation_steps: 4
num_epochs: 1
optimizer: adamw_torch
bf16: true
"""
TORCHTUNE = """model:
  _component_: torchtune.models.llama3_2.qlora_llama3_2_1b
  lora_rank: 16
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: null
batch_size: 4
gradient_accumulation_steps: 8
epochs: 1
dtype: bf16
"""
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 8192,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "vocab_size": 128256,
}
MEGATRON = """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gres=gpu:8
#SBATCH --time=1-12:00:00
GPUS_PER_NODE=8
NNODES=2
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
TP=${TP:-2}
DTYPE="fp8"
LAUNCH=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
)
MODEL=(
    --num-layers 32  # a comment
    --hidden-size 4096
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --swiglu
    --seq-length 4096
)
OPTIONS=" \\
    --micro-batch-size 1 \\
    --global-batch-size 128 \\
    --train-iters $(( 1000 * 500 )) \\
    --bf16"
if [[ "$DTYPE" == "fp8" ]]; then
    MODEL+=("--fp8-format hybrid")
else
    MODEL+=(--vocab-size 1)
fi
for x in 1 2; do
    NNODES=99
done
torchrun ${LAUNCH[@]} pretrain_gpt.py ${MODEL[@]} $OPTIONS \\
    --tensor-model-parallel-size $TP --save $(date +%s)
"""
SKYPILOT = """resources:
  accelerators: A100-80GB:8
num_nodes: 2
run: |
  accelerate launch --num_processes 16 -m axolotl.cli.train axolotl.yml
"""
