"""AWS Neuron's runs, as the scripts that its tables of throughput link to state them.

`neuronx-nemo-megatron` (gpt_23b.sh, gpt_46b.sh, gpt_175b.sh) and `neuronx-distributed` (examples/training/llama) of
aws-neuron. No script interleaves its pipeline. Attention is written out, with scores in memory, except that of Llama 3,
which has a kernel of its own.
"""

#: What the scripts recompute, if not attention alone.
_RECOMPUTED = {"gpt3-46b": "full"}
_KERNEL = ("llama3",)


def configured(row: dict[str, str]) -> dict[str, str]:
    """What the scripts add to a row of the tables; chips of two cores hold the samples of both."""
    if row["parallelism"] == "ddp":
        return row | {"micro_batch": str(2 * int(row["micro_batch"]))}
    return row | {
        "parallelism": f"{row['parallelism']} vp1",
        "activation_ckpt": _RECOMPUTED.get(row["model"], "selective"),
    }


def writes_attention_out(row: dict[str, str]) -> bool:
    """Whether the script of a row of a language model saves and moves the scores of attention."""
    return not row["model"].startswith(_KERNEL)
