"""Independent check of a portfolio plan: its violations and its cost, without code of the search."""

import math

from gpuplan.planner.portfolio.portfolio_instance import LEFT_OUT, ROUNDING, Instance, Plan


def violations(instance: Instance, plan: Plan) -> list[str]:
    """The violations of a plan, one sentence each; empty if the plan is valid."""
    wrong: list[str] = []
    use = [[0.0] * instance.slots for _ in range(instance.pools)]
    spent = lost = 0.0
    for job in range(instance.jobs):
        kind, start = int(plan.configuration[job]), int(plan.start[job])
        if kind == LEFT_OUT:
            lost += float(instance.penalty_usd[job])
            continue
        if int(instance.job[kind]) != job:
            wrong.append(f"job {job} has configuration {kind}, which is another job's")
            continue
        end = start + int(instance.duration[kind])
        if start < int(instance.release[job]) or end > min(int(instance.due[job]), instance.slots):
            wrong.append(f"job {job} runs in slots {start} to {end}, outside its dates")
            continue
        spent += float(instance.cost_usd[kind])
        for pool, units in zip(instance.pool[kind].tolist(), instance.units[kind].tolist(), strict=True):
            for slot in range(start, end) if pool < instance.pools else ():
                use[pool][slot] += units
    for pool, used in enumerate(use):
        for slot, units in enumerate(used):
            if units > float(instance.capacity[pool, slot]) + 1e3 * ROUNDING:
                wrong.append(
                    f"pool {pool} has {units:g} units in use in slot {slot}, above {instance.capacity[pool, slot]:g}"
                )
    if spent > instance.budget_usd + 1e-6:
        wrong.append(f"{spent:.6f} USD are spent, above the budget of {instance.budget_usd:.6f}")
    if not math.isclose(spent + lost, plan.cost_usd, rel_tol=1e-9, abs_tol=1e-6):
        wrong.append(f"the plan says {plan.cost_usd:.6f} USD and comes to {spent + lost:.6f}")
    return wrong
