"""The chosen configuration while it runs: layout, rate, memory, checkpoints, carbon."""

import numpy as np

from planner.answer import Phase
from planner.candidates.configurations import Configurations
from planner.candidates.gather import Candidates
from planner.choice import in_words
from planner.cost.preemption import checkpoint_interval


def phase(found: Candidates, table: Configurations, index: int, share: float = 1.0) -> Phase:
    """Configuration `index` as the phase of a plan that does a share of the work; the table's bill is that of the share."""
    market_number, row = int(table.market[index]), int(table.row[index])
    estimates = found.estimated[market_number].estimates
    choice = in_words(found, table, index)
    rate = float(table.cluster_rate[index])
    work_hours = estimates.hours_with_goodput[row : row + 1] * share
    interval = (
        checkpoint_interval(work_hours, table.checkpoint_hours[index : index + 1], np.array([rate])) if rate else None
    )
    return Phase(
        choice=choice,
        precision=estimates.precisions[int(estimates.precision[row])],
        precision_substituted=bool(estimates.substituted[row]),
        layout=estimates.layout(row),
        throughput=float(estimates.units_per_second[row]),
        unit=f"{found.question.work.unit}/s",
        mfu=float(estimates.mfu[row]),
        memory_gib=float(estimates.peak_gib[row]),
        capacity_gib=float(estimates.capacity_gib[row]),
        training_hours=float(estimates.hours[row]) * share,
        hours_with_goodput=float(work_hours[0]),
        log_sigma=float(estimates.log_sigma[row]),
        interruptions_per_hour=rate / choice.nodes,
        checkpoint_interval_hours=None if interval is None else float(interval[0]),
        expected_preemptions=rate * float(table.bill.run_hours[index]),
        carbon_kg=None if np.isnan(table.carbon_kg[index]) else float(table.carbon_kg[index]),
        correction=found.question.learned.of(choice.accelerator),
        share=share,
        market=market_number,
    )
