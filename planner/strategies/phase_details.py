"""The chosen configuration as a phase of a plan: layout, rate, memory, checkpoints, carbon."""

import numpy as np

from gpuplan.planner.candidates.candidate_set import Candidates
from gpuplan.planner.candidates.configuration_choice import in_words
from gpuplan.planner.candidates.configurations import Configurations
from gpuplan.planner.cost.preemption_and_checkpoint_interval import checkpoint_interval
from gpuplan.planner.model.outcome import PhaseChoice


def phase(candidates: Candidates, table: Configurations, index: int, share: float = 1.0) -> PhaseChoice:
    """Configuration `index` as a phase that does a share of the work; the table's cost breakdown is that of the share."""
    market_number, row = int(table.market[index]), int(table.row[index])
    estimates = candidates.estimated[market_number].estimates
    choice = in_words(candidates, table, index)
    rate = float(table.cluster_rate[index])
    run, at = table.priced_configurations, table.which[index]
    work_hours = estimates.hours_with_goodput[row : row + 1] * share
    interval = (
        checkpoint_interval(work_hours, table.checkpoint_hours[index : index + 1], np.array([rate])) if rate else None
    )
    return PhaseChoice(
        choice=choice,
        precision=estimates.precisions[int(estimates.precision[row])],
        precision_substituted=bool(estimates.substituted[row]),
        layout=estimates.layout(row),
        throughput=float(estimates.units_per_second[row]),
        unit=f"{candidates.question.work.unit}/s",
        mfu=float(estimates.mfu[row]),
        memory_gib=float(estimates.peak_gib[row]),
        capacity_gib=float(estimates.capacity_gib[row]),
        training_hours=float(estimates.hours[row]) * share,
        hours_with_goodput=float(work_hours[0]),
        log_sigma=float(estimates.log_sigma[row]),
        interruptions_per_hour=rate / choice.nodes**candidates.question.settings.node_loss_exponent,
        wait_hours=float(run.wait_hours[at]) if rate else None,
        setup_hours=float(run.setup_hours[at]),
        checkpoint_interval_hours=None if interval is None else float(interval[0]),
        expected_preemptions=rate * float(table.cost_breakdown.run_hours[index]),
        carbon_kg=None if np.isnan(table.carbon_kg[index]) else float(table.carbon_kg[index]),
        correction=candidates.question.learned.of(choice.accelerator),
        share=share,
        market=market_number,
    )
