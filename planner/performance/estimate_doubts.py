"""What an estimate rests on that the user did not state: the largest doubts about its hours, and the assumed values.

Each effect is that of estimating anew with the alternative: another software class, precision or recomputation changes the
work of a step as well as its time, and the layout is chosen again.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from gpuplan.catalog.model.accelerators import Accelerator
from gpuplan.catalog.runtime.errors import UnusableInput
from gpuplan.planner.model.estimate import AssumedField, Doubt
from gpuplan.planner.model.job import Training, Workload
from gpuplan.planner.model.learned import NOTHING, LearnedCorrections
from gpuplan.planner.performance.accelerator_constants import peak_tflops
from gpuplan.planner.performance.cluster_rates import DOES_NOT_FIT
from gpuplan.planner.performance.corrected_estimates import estimate_learned, hours_of_one, reasons_learned
from gpuplan.planner.performance.estimator_request import CHECKPOINTING, Estimates, LayoutRequest, Machines
from gpuplan.planner.performance.fastest_layout import FREE
from gpuplan.planner.performance.goodput import modelled_goodput
from gpuplan.planner.performance.layout_question import splits_data_only
from gpuplan.planner.performance.measured_coverage import measured_runs
from gpuplan.planner.performance.prediction_bands import Z80
from gpuplan.planner.workload import work_of
from gpuplan.planner.workload.step_work import CONVOLUTIONAL_TASKS, Work
from gpuplan.planner.workload.training_methods import settled, software_of

#: How many doubts an estimate names.
MOST_DOUBTS = 3
#: The least ratio of the hours at both ends of a doubt that is named.
LEAST_EFFECT = 1.02
_SPLITTING = ("tensor", "pipeline", "context", "expert")
_WAYS = (*_SPLITTING, "data", "zero_stage")
_PARALLELISM = "training.parallelism"
_OVERLAP = "training.tensor_overlap"
#: Software that people run without saying so: Hugging Face's own, one kernel after the other.
_UNSTATED_SOFTWARE = "eager"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """A job on one configuration (the only row of `machines`), to be estimated again with another assumption.

    `request` is the layout as far as it is stated; `assumes_network` says that nobody stated the network between nodes.
    """

    workload: Workload
    training: Training
    work: Work
    machines: Machines
    request: LayoutRequest = FREE
    learned: LearnedCorrections = NOTHING
    assumes_network: bool = False
    _hours: dict[Training, float] = field(default_factory=dict)

    @property
    def chip(self) -> Accelerator:
        """The accelerator."""
        return self.machines.accelerators[int(self.machines.accelerator[0])]

    @property
    def estimated(self) -> Estimates:
        """The estimate as it stands."""
        return estimate_learned(
            self.work, self.training, self.machines, goodput=1.0, learned=self.learned, request=self.request
        )

    def hours(
        self,
        *,
        work: Work | None = None,
        training: Training | None = None,
        machines: Machines | None = None,
        request: LayoutRequest | None = None,
    ) -> float:
        """Hours with other work, training, machines or layout; inf where the job cannot run."""
        return hours_of_one(
            work or self.work,
            training or self.training,
            machines or self.machines,
            learned=self.learned,
            request=request or self.request,
        )

    def hours_trained(self, training: Training, work: Work | None = None) -> float:
        """Hours with other training and its work, unless that is given; inf where the job cannot run or does not take it."""
        if training not in self._hours:
            try:
                work = work or work_of(self.workload, training)
                self._hours[training] = self.hours(work=work, training=training)
            except UnusableInput:
                self._hours[training] = math.inf
        return self._hours[training]

    def does_not_fit(self, training: Training) -> bool:
        """Whether the job takes other training, and then needs more memory than there is."""
        if self.can_train(training):
            return False
        try:
            work = work_of(self.workload, training)
            reason = reasons_learned(work, training, self.machines, learned=self.learned, request=self.request)
        except UnusableInput:
            return False
        return bool(reason[0] == DOES_NOT_FIT)

    def can_train(self, training: Training) -> bool:
        """Whether the job runs with other training."""
        return math.isfinite(self.hours_trained(training))


def doubts_of(asked: Asked, estimated: Estimates) -> tuple[Doubt, ...]:
    """The largest doubts about the only row of `estimated`, the largest first; that row is what `asked` gives as it stands."""
    hours = float(estimated.hours[0])
    factors = (*_software(asked), *_precision(asked, estimated), *_checkpointing(asked, estimated))
    factors += (
        *_batch(asked),
        *_layout(asked, estimated),
        *_tensor_overlap(asked, estimated),
        *_memory_format(asked, estimated),
        *_network(asked),
    )
    doubts = [_band(asked, estimated)]
    for what, other, state in factors:
        if math.isfinite(other):
            low, high = sorted((1.0, other / hours))
            doubts.append(Doubt(what=f"{what} {other / hours:.2g}x", effect_low=low, effect_high=high, state=state))
    doubts = [doubt for doubt in doubts if doubt.effect_high / doubt.effect_low >= LEAST_EFFECT]
    return tuple(sorted(doubts, key=lambda doubt: doubt.effect_low / doubt.effect_high)[:MOST_DOUBTS])


#: An assumption with its alternative in words that a factor ends, the hours of the alternative, and what states it.
Alternative = tuple[str, float, str]


def _band(asked: Asked, estimated: Estimates) -> Doubt:
    """What measured runs of the class differ by from their estimates, and whether any ran on this chip."""
    task, chip = asked.work.task, asked.chip.name
    spread = math.exp(Z80 * float(estimated.log_sigma[0]))
    runs = measured_runs(chip, task)
    measured = f"{runs:,} measured run{'' if runs == 1 else 's'}" if runs else "no measured run"
    of_what = "of the estimate" if runs else "of this class on other chips"
    return Doubt(
        what=f"{measured} of class {task} on {chip}; the 80 % band {of_what}",
        effect_low=1 / spread,
        effect_high=spread,
        state="gpuplan actuals with a run of your own, or workload kind measured",
    )


def _software(asked: Asked) -> Iterator[Alternative]:
    """Eager software where none is stated and it is not assumed, compiled where it is."""
    if asked.training.software == "auto":
        assumed = software_of(settled(asked.training, asked.work.task, asked.work.unit))
        unstated = "compiled" if assumed == "eager" else "eager"
        other = asked.hours_trained(replace(asked.training, software=unstated))
        what = f"software assumed {assumed}: {unstated} would take"
        yield what, other, "training.software"


def _precision(asked: Asked, estimated: Estimates) -> Iterator[Alternative]:
    """8 bits where transformers may train at them, else 19-bit or full precision, where no precision is stated."""
    chosen = estimated.precisions[int(estimated.precision[0])]
    usual = ("fp8",) if asked.work.shape and asked.training.method == "full" else ("tf32", "fp32")
    other = next((name for name in usual if name != chosen and peak_tflops(asked.chip, name)), None)
    if asked.training.precision == "auto" and other is not None:
        hours = asked.hours_trained(replace(asked.training, precision=other))
        yield f"precision assumed {chosen}: {other} would take", hours, "training.precision"


def _checkpointing(asked: Asked, estimated: Estimates) -> Iterator[Alternative]:
    """Full recomputation, where nothing is stated and less was found to fit."""
    chosen = CHECKPOINTING[int(estimated.checkpointing[0])]
    is_open = asked.training.activation_checkpointing == "auto" and asked.request.checkpointing is None
    if is_open and chosen != "full" and asked.work.shape:
        hours = asked.hours(request=replace(asked.request, checkpointing="full"))
        what = f"activation checkpointing assumed {chosen}: full would take"
        yield what, hours, "training.activation_checkpointing"


def _batch(asked: Asked) -> Iterator[Alternative]:
    """Twice the batch, or half of it where that is more than the whole job, where the batch is the default."""
    work = asked.work
    twice = 2 * work.units_per_step <= work.units_total
    batch = work.units_per_step * (2.0 if twice else 0.5)
    if work.batch_is_default and batch >= work.units_per_sample:
        what = f"batch assumed {work.units_per_step:,.0f} {work.unit}: {'twice' if twice else 'half of'} it would take"
        yield what, asked.hours(work=replace(work, units_per_step=batch)), batch_field(work)


def _layout(asked: Asked, estimated: Estimates) -> Iterator[Alternative]:
    """Data parallelism alone where the model is split, and any where it is not, unless either is stated."""
    training = asked.training
    stated = training.parallelism != "auto" or any(getattr(asked.request, name) is not None for name in _WAYS)
    if stated or not asked.work.shape:
        return
    if splits_data_only(training):
        other = asked.hours_trained(replace(training, parallelism="any"), asked.work)
        yield "parallelism assumed data (DDP, ZeRO, FSDP): any would take", other, _PARALLELISM
    elif max(int(getattr(estimated, name)[0]) for name in _SPLITTING) > 1:
        other = asked.hours_trained(replace(training, parallelism="data"), asked.work)
        yield "layout chosen by gpuplan: data parallelism alone (DDP, ZeRO, FSDP) would take", other, _PARALLELISM


def _tensor_overlap(asked: Asked, estimated: Estimates) -> Iterator[Alternative]:
    """Tensor-parallel communication that waits, where it is assumed to be hidden as in measured runs."""
    training = asked.training
    if training.tensor_overlap == "auto" and int(estimated.tensor[0]) > 1:
        other = asked.hours_trained(replace(training, tensor_overlap="none"), asked.work)
        yield "tensor-parallel communication assumed partly hidden: waiting for it would take", other, _OVERLAP


def _memory_format(asked: Asked, estimated: Estimates) -> Iterator[Alternative]:
    """Images in PyTorch's own order, where nobody states it and kernels take the other."""
    narrow = estimated.precisions[int(estimated.precision[0])] not in {"fp32", "tf32"}
    if asked.training.memory_format == "auto" and asked.work.task in CONVOLUTIONAL_TASKS and narrow:
        other = asked.hours_trained(replace(asked.training, memory_format="channels_first"), asked.work)
        yield "memory format not stated: channels first would take", other, "training.memory_format"


def _network(asked: Asked) -> Iterator[Alternative]:
    """Half of the network between nodes, where it is the usual one of such machines."""
    gbps = float(asked.machines.internode_gbps[0])
    if asked.assumes_network and int(asked.machines.nodes[0]) > 1 and gbps > 0:
        machines = replace(asked.machines, internode_gbps=asked.machines.internode_gbps / 2)
        what = f"network assumed {gbps:,.0f} Gbit/s a node: half of it would take"
        yield what, asked.hours(machines=machines), "on.internode_gbps"


def batch_field(work: Work) -> str:
    """The field that states the batch."""
    return f"workload.global_batch_{'tokens' if work.unit == 'tokens' else 'samples'}"


def assumed_of(
    work: Work, training: Training, precision: str, goodput: float | None, gpus: int
) -> tuple[AssumedField, ...]:
    """The values that the estimate chose, each with its reason."""
    assumed = []
    if training.software == "auto":
        assumed.append(
            AssumedField(
                field="training.software", value=software_of(settled(training, work.task, work.unit)), why="the default"
            )
        )
    if training.precision == "auto":
        assumed.append(AssumedField(field="training.precision", value=precision, why="the fastest that trains safely"))
    if work.batch_is_default:
        assumed.append(
            AssumedField(
                field=batch_field(work), value=work.units_per_step, why="of the model, or by its size and amount"
            )
        )
    if goodput is None:
        share = round(float(modelled_goodput(np.array([float(gpus)]))[0]), 4)
        assumed.append(
            AssumedField(field="settings.goodput", value=share, why="failures, checkpoints and evaluation, modelled")
        )
    return tuple(assumed)
