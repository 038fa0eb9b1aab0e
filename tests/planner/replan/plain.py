"""Jobs under way on small catalogues, and a plain second way to price what may be done with them: loops, no pruning."""

import random
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from itertools import product

from gpuplan.catalog.model.egress_rates import egress_tiers
from gpuplan.catalog.snapshots.offer_columns import Columns
from gpuplan.planner.model.job import Explicit, Preset, TrainingJob
from gpuplan.planner.model.outcome import Planned
from gpuplan.planner.planning import plan
from gpuplan.planner.replan.replan_answer import Replanned
from gpuplan.planner.replan.replan_decision import replan
from gpuplan.planner.replan.running_job import Amount, On, UnderWay
from gpuplan.planner.workload import work_of
from tests.planner.small_catalogues import START
from tests.planner.spot_settings import replaced_at_once
from tests.planner.strategies.phased.cases import rented_case
from tests.planner.strategies.phased.plain import STEPS, Column, Plain, Search

#: As observed: the plain loops price rows as they are, on days after they were read.
SETTINGS = replaced_at_once(least_saving_of_a_move_percent=0.0, prices="as-observed")


@dataclass(frozen=True)
class Case:
    """A job, a catalogue, and where the job stands."""

    job: TrainingJob
    columns: Columns
    running: UnderWay

    def answer(self, **changes: object) -> Replanned:
        """What to do, with something changed of where it stands."""
        running = replace(self.running, **changes)  # type: ignore[arg-type]
        return replan(self.job, self.columns, running=running, settings=SETTINGS)


def drawn(seed: int, *, up: bool = True) -> Case | None:
    """A job of which a part is done on some configuration, with some of its deadline left; None if nothing could run it."""
    draw = random.Random(f"under way {seed}")
    job, columns, _ = rented_case(seed)
    able = Search(job, columns, SETTINGS).columns
    if not able or job.deadline_hours is None:
        return None
    column = draw.choice(able)
    done = draw.choice((0.0, draw.uniform(0.01, 0.95)))
    provider, region, name, kind, zone = _named(column)
    elapsed = 1 + round(job.deadline_hours * done * draw.uniform(0.3, 1.2))
    if elapsed >= job.deadline_hours:
        return None
    on = On(instance_type=name, nodes=column.nodes, provider=provider, region=region, zone=zone, price_kind=kind)
    running = UnderWay(
        now=START + timedelta(hours=elapsed), done=Amount(value=done), on=on, up=up, up_hours=float(elapsed)
    )
    return Case(job, columns, running)


@cache
def as_planned(seed: int, *, confidence: float = 0.9) -> tuple[Planned, Case] | None:
    """A job that runs by its plan, at the pace that the deadline was planned at; None if that is nothing steady."""
    draw = random.Random(f"as planned {seed}")
    job, columns, _ = rented_case(seed)
    job = replace(job, confidence=confidence)
    planned = plan(job, columns, settings=SETTINGS)
    if not isinstance(planned, Planned) or any(phase.interruptions_per_hour for phase in planned.phases):
        return None
    first = planned.phases[0]
    share = draw.uniform(0.05, 0.9)
    elapsed = first.setup_hours + (first.choice.hours.confident - first.setup_hours) * share
    offer = first.choice.offer
    on = On(
        instance_type=offer.instance_type,
        nodes=first.choice.nodes,
        provider=offer.provider,
        region=offer.region,
        zone=offer.zone,
        price_kind=offer.price_kind,
    )
    done = Amount(value=first.share * share)
    return planned, Case(job, columns, UnderWay(now=START + timedelta(hours=elapsed), done=done, on=on))


def _named(column: Column) -> tuple[str, str, str, str, str]:
    provider, region, zone, name, kind = column.key
    return provider, region, name, kind, zone


class After(Search):
    """All plans of a job under way, from now: going on, moving now, and going on for a while before a move."""

    def __init__(self, case: Case) -> None:
        self.case, running = case, case.running
        left = case.answer().left
        super().__init__(rest_of(left.job, left.share), case.columns, SETTINGS)
        on = running.on
        assert on is not None
        key = (on.provider, on.region, on.zone, on.instance_type, on.price_kind)
        self.here = next(column for column in self.columns if column.key == key and column.nodes == on.nodes)
        self.place = (on.provider, on.region)
        self.columns = [column for column in self.columns if column.stack == self.here.stack]

    def priced_from(self, columns: tuple[Column, ...], steps: tuple[int, ...], *, up: bool) -> Plain:
        """A plan from now; `up` if its first column is the machines that run."""
        micros, clock, before = 0, 0.0, None
        write = self.gb / SETTINGS.checkpoint_gbs / 3600 / self.here.nodes if self.case.running.up else 0.0
        for i, (column, share) in enumerate(zip(columns, steps, strict=True)):
            stays = up and i == 0
            # What runs is set up, and has been billed for its least time already.
            priced_configurations = replace(column, setup_hours=0.0, minimum_hours=0.0) if stays else column
            usd, (busy, _, _) = self.phase(priced_configurations, share, last=i == len(columns) - 1)
            if not stays:
                origin = self.place if before is None else before.place
                if before is None:
                    usd += write * self.here.nodes * (self.here.usd_per_hour + self.here.power_usd_per_hour)
                    clock += write
                if origin != column.place:
                    usd += egress_tiers(*origin, *column.place).egress_usd(self.gb)
                    clock += self.gb / SETTINGS.move_gbs / 3600
                    usd += 0.0 if column.place == self.place else self._brought(column.place)
            clock += busy
            if clock == float("inf"):
                return Plain(0, clock, columns, steps)
            micros += round(usd * 1e6)
            before = column
        return Plain(micros, clock, columns, steps)

    def best_from_now(self, points: int) -> Plain | None:
        """The cheapest of: one configuration, and two on a grid of shares and where the deadline binds."""
        plans = [self.priced_from((column,), (STEPS,), up=False) for column in self.columns]
        pairs = [(one, other) for one, other in product(self.columns, repeat=2) if one is not other]
        tried = [(pair, False) for pair in pairs]
        if self.case.running.up:
            plans.append(self.priced_from((self.here,), (STEPS,), up=True))
            tried += [((self.here, other), True) for other in self.columns]
        for pair, up in tried:
            first = {round(STEPS * i / points) for i in range(1, points)} | self._at_the_deadline(pair, up=up)
            plans += [self.priced_from(pair, (a, STEPS - a), up=up) for a in sorted(first) if 0 < a < STEPS]
        return min((plan for plan in plans if self.allowed(plan)), key=lambda plan: plan.micros, default=None)

    def _at_the_deadline(self, pair: tuple[Column, ...], *, up: bool) -> set[int]:
        low, high = 1, STEPS - 1
        while high - low > 1:
            middle = (low + high) // 2
            late = self.priced_from(pair, (middle, STEPS - middle), up=up).hours > (self.job.deadline_hours or 0.0)
            low, high = (low, middle) if late else (middle, high)
        return {low - 1, low, high, high + 1}

    def priced_as(self, best: Planned, *, up: bool) -> Plain:
        """The plan that was found, priced again."""
        columns = []
        for phase in best.phases:
            offer = phase.choice.offer
            key = (offer.provider, offer.region, offer.zone, offer.instance_type, offer.price_kind)
            columns.append(next(c for c in self.columns if c.key == key and c.nodes == phase.choice.nodes))
        steps = tuple(round(phase.share * STEPS) for phase in best.phases)
        return self.priced_from(tuple(columns), steps, up=up)


def rest_of(job: TrainingJob, share: float) -> TrainingJob:
    """A job that asks for this share of the work alone."""
    work = job.workload
    if isinstance(work, Explicit):
        steps = None if work.steps is None else work.steps * share
        return replace(job, workload=replace(work, total_flops=work.total_flops * share, steps=steps))
    assert isinstance(work, Preset)
    assert work.tokens is not None
    # Smaller presets would be trained in smaller batches.
    batch = work_of(job.workload, job.training).units_per_step
    return replace(job, workload=replace(work, tokens=work.tokens * share, global_batch_tokens=batch))
