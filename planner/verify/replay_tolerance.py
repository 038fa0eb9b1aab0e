"""How far a stated figure of a standby may be from thousands of replayed runs: their interval, and the error of the planner's model."""

from typing import NamedTuple

from gpuplan.planner.verify.field_coverage import Path
from gpuplan.planner.verify.standby_replay import Estimated
from gpuplan.planner.verify.verification_context import Context


class Room(NamedTuple):
    """Tolerance of a stated figure beside the interval of the replayed runs: relative, absolute, and a relative one
    that grows where a run has few segments, each of which is a step.
    """

    share: float
    absolute: float
    of_a_segment: float = 0.0

    def share_of(self, segments: float) -> float:
        """The relative tolerance for runs of so many segments."""
        return self.share + self.of_a_segment / max(segments, 1.0)


#: The planner approximates the rule. These are about twice its largest measured errors over 18 plans on small
#: catalogues (0.8 % of hours on interruptible machines, 1.6 % of the standby's, 5.4 % of calls, 3.2 % of their
#: moment, 0.5 % of expected hours, 1.1 % of quantiles of hours) and over runs of eight segments (3.3 % of hours). Quantiles of
#: cost were off by 1.4 % at most in 85 plans; of 284 more, two of few segments were off by 3.3 and 4.4 %.
REPLAYED = {
    "hours paid on interruptible machines": Room(0.01, 0.003, 0.3),
    "hours on interruptible machines": Room(0.01, 0.003, 0.3),
    "standby hours": Room(0.03, 0.003, 0.3),
    "calls": Room(0.08, 0.003),
    "moment of the call": Room(0.08, 0.05),
    "expected hours": Room(0.015, 0.01),
    "quantiles of hours": Room(0.03, 0.01),
    "quantiles of cost": Room(0.04, 0.01),
}


def within(context: Context, path: Path, name: str, stated: float, estimated: Estimated, *, segments: float) -> None:
    """Check that a stated figure lies within the widened interval of replayed runs of so many segments."""
    room = REPLAYED[name]
    ok = estimated.allows(stated, share=room.share_of(segments), absolute=room.absolute)
    why = f"replayed runs give {estimated.value:.5g} +- {estimated.error:.2g} {name}"
    context.field_coverage.is_true("replayed", path, ok, estimated.value, why)
