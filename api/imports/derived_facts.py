"""Facts that follow from others: the global batch from micro-batch, accumulation and processes; tokens from steps."""

from gpuplan.api.imports.facts import AUTO, Amount, Origin, PerWorld, TrainingFacts


def data_parallel_world(facts: TrainingFacts) -> float | None:
    """Processes that hold different data; None if the world is not stated or does not divide."""
    world = facts.number("stated_world_size")
    if world is None:
        return None
    share = world / model_parallel(facts)
    return share if share >= 1 and share == int(share) else None


def model_parallel(facts: TrainingFacts) -> int:
    """Processes that hold one copy of the model together: tensor x pipeline x context."""
    parts = (facts.whole(f"{name}_parallel") or 1 for name in ("tensor", "pipeline", "context"))
    product = facts.world_divisor
    for part in parts:
        product *= part
    return product


def state_global_batch(facts: TrainingFacts, unit: str = "samples") -> None:
    """State the global batch, micro-batch x accumulation x processes, as a number or a formula of the world."""
    micro, accumulation = facts.number("micro_batch"), facts.number("gradient_accumulation")
    if micro is None or accumulation is None or facts.value("global_batch") not in (None, AUTO):
        return
    world = data_parallel_world(facts)
    per_world = PerWorld(micro * accumulation, model_parallel(facts))
    origin = facts.origin("micro_batch", "gradient_accumulation")
    both = "micro-batch x accumulation x processes"
    if not origin.is_default:
        origin = Origin(file=origin.file, line=origin.line, because=both)
    contradiction = world is None and facts.number("stated_world_size") is not None
    if not contradiction:
        facts.put("global_batch", Amount(per_world if world is None else micro * accumulation * world, unit), origin)


def hold_processes(facts: TrainingFacts) -> None:
    """State a batch that is a formula of the processes as a number, where a later file says how many there are."""
    batch, world = facts.value("global_batch"), data_parallel_world(facts)
    if (
        world is not None
        and isinstance(batch, Amount)
        and isinstance(batch.value, PerWorld)
        and not batch.value.inverse
    ):
        samples = batch.value.factor * world
        facts.replace("global_batch", Amount(samples, batch.unit), facts.origin("global_batch"))


def state_accumulation(facts: TrainingFacts, batch: float) -> None:
    """State the accumulation that a global batch in samples leaves: batch / micro-batch / processes."""
    micro = facts.number("micro_batch")
    if not micro:
        return
    world = data_parallel_world(facts)
    origin = facts.origin("global_batch")
    because = Origin(file=origin.file, line=origin.line, because="global batch / micro-batch / processes")
    if world is not None:
        left = batch / micro / world
        if left == int(left) and left >= 1:
            facts.put("gradient_accumulation", int(left), because)
    elif facts.number("stated_world_size") is None and model_parallel(facts) == 1:
        facts.put("gradient_accumulation", PerWorld(batch / micro, inverse=True), because)


def state_totals(facts: TrainingFacts) -> None:
    """State samples and tokens of a pretraining run that states its steps, batch in samples and sequence length."""
    steps, length, batch = facts.number("steps"), facts.whole("sequence_length"), facts.value("global_batch")
    samples = facts.number("samples")
    origin = facts.origin("steps", "samples")
    because = Origin(file=origin.file, line=origin.line, because="steps x global batch")
    if samples is None and steps and isinstance(batch, Amount) and batch.unit == "samples":
        if isinstance(batch.value, PerWorld):
            if length and not batch.value.inverse:
                per = PerWorld(steps * batch.value.factor * length, batch.value.group)
                facts.put("tokens", per, because)
            return
        samples = steps * batch.value
        facts.put("samples", samples, because)
    if samples is not None and length and "tokens" not in facts.facts:
        facts.put("tokens", samples * length, Origin(file=origin.file, line=origin.line, because="samples x length"))


def overrule_epochs(facts: TrainingFacts, stated: object, origin: Origin) -> None:
    """State epochs; where a number of steps is stated too, it ends the run."""
    if facts.number("steps") is None:
        if isinstance(stated, int | float) and not isinstance(stated, bool) and stated > 0:
            facts.put("epochs", stated, origin)
    elif not origin.is_default:
        facts.put("epochs", f"({stated:g}, overruled)" if isinstance(stated, int | float) else None, origin)
