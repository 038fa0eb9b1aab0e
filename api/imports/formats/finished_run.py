"""Results of runs that ended: `all_results.json` and `trainer_state.json` of the Hugging Face Trainer.

Keys: huggingface/transformers `src/transformers/trainer.py` (speed metrics), read on 2026-11-27. Rates are rounded, so steps and
batch are accurate to a few percent.
"""

from gpuplan.api.imports.facts import Amount, Origin, TrainingFacts
from gpuplan.api.imports.key_table import Key, count, read_keys, real
from gpuplan.api.imports.located_document import Located
from gpuplan.api.imports.reader import Follow, Reader, has

NAME = "finished run"

TABLE = (
    Key(fact="epochs", keys=("epoch", "num_train_epochs"), read=real),
    Key(fact="samples", keys=("train_samples",), read=count),
    Key(fact="steps", keys=("global_step", "max_steps"), read=count),
    Key(fact="micro_batch", keys=("train_batch_size",), read=count),
)


def signs(document: Located) -> int:
    """Rates of training, or the log of a run."""
    return 5 * has(document, "train_runtime", "train_samples_per_second", "log_history", "global_step")


def read(document: Located, facts: TrainingFacts, follow: Follow) -> None:
    """State the size of the run, and its batch by the two rates."""
    read_keys(TABLE, document, facts, NAME)
    hours, samples, steps = (
        document.get(key) for key in ("train_runtime", "train_samples_per_second", "train_steps_per_second")
    )
    if isinstance(hours, int | float) and 0 < hours < 1e10:
        facts.runtime_hours = hours / 3600
    if isinstance(samples, int | float) and 0 < samples < 1e12:
        facts.samples_per_second = float(samples)
    if isinstance(steps, int | float) and 0 < steps < 1e9 and isinstance(hours, int | float) and 0 < hours < 1e10:
        origin = Origin(file=document.name, line=document.line("train_steps_per_second"), because="by rounded rates")
        facts.put("steps", round(steps * hours), origin)
        if facts.samples_per_second:
            facts.put("global_batch", Amount(round(facts.samples_per_second / steps), "samples"), origin)


READER = Reader(name=NAME, signs=signs, read=read)
