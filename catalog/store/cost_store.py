"""Costs by month: one transaction per method."""

from gpuplan.catalog.store import stored_costs
from gpuplan.catalog.store.store_part import StorePart, reads, writes


class CostStore(StorePart):
    """Which plans count in the costs of a month, and the budgets of teams."""

    adopt = writes(stored_costs.write_adopted)
    drop = writes(stored_costs.delete_adopted)
    refuse_change = reads(stored_costs.refuse_change)
    adopted = reads(stored_costs.read_adopted)
    adopted_ids = reads(stored_costs.read_adopted_ids)
    set_budget = writes(stored_costs.write_budget)
    replace_budget = writes(stored_costs.replace_budget)
    budgets = reads(stored_costs.read_budgets)
