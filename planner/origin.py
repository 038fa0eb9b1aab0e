"""Where a job that is under way stands: what it takes to go on from there on any other machines."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The place of the last checkpoint and the data, and the software that the checkpoint is good for.

    Machines that still run write a checkpoint before others take over: `write_hours` on the clock and `write_usd` on the
    bill, both 0 where they are gone. `far_hours` is how long the checkpoint is on its way to another region. `kin` are
    software stack and precision: others cannot take it up.
    """

    provider: str
    region: str
    kin: tuple[str, str]
    write_hours: float = 0.0
    write_usd: float = 0.0
    far_hours: float = 0.0
