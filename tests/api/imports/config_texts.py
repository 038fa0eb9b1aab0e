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
