"""The state of a running job: its placement, and the cost and time to continue on other machines."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The place of the last checkpoint and the data, and the machines that can load the checkpoint.

    Machines that still run write a checkpoint before others take over, which takes `write_hours` and `write_usd`; both
    are 0 if they are gone. `far_hours` is the time to copy the checkpoint to another region. `migration_class` is the
    software stack and precision; only machines of the same class can load the checkpoint.
    """

    provider: str
    region: str
    migration_class: tuple[str, str]
    write_hours: float = 0.0
    write_usd: float = 0.0
    far_hours: float = 0.0
