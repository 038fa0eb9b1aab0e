"""Short names of sources and decisions."""

import numpy as np
from numpy.typing import NDArray

from gpuplan.planner.procurement.commitments import Node, Spending
from gpuplan.planner.procurement.forecast import Machine
from gpuplan.planner.procurement.procurement_model import Model
from gpuplan.planner.procurement.served_jobs import Served, Source, is_there

Floats = NDArray[np.float64]


def source_name(given: Served, source: Source) -> str:
    """`HGX-H100-8`, `p5.48xlarge (reserved_3y)`, `savings_plan_1y on p5 in us-east-1`."""
    match source:
        case Machine():
            return source.owned.instance_type.name if source.owned else source.name
        case Node():
            offer = given.market.columns.offer(int(given.market.snapshot.original[source.place]))
            return f"{offer.instance_type} in {offer.region} ({offer.price_kind})"
        case Spending():
            what = [source.pool.price_kind, f"on {source.pool.family}" if source.pool.family else "on any machine"]
            what += [f"in {source.pool.region}"] if source.pool.region else []
            return " ".join(what)


def in_words(given: Served, model: Model, units: Floats) -> str:
    """`buy 2 x HGX-H100-8, commit to 3 x p5.48xlarge (reserved_3y)`, or `rent everything`."""
    priced_configurations, terms, has_existing = [], [], False
    for u, unit in enumerate(model.units):
        source = given.sources[unit.source]
        if is_there(source):
            has_existing = True
        elif units[u] > 1e-9:
            name = source_name(given, source)
            if isinstance(source, Machine):
                priced_configurations.append(f"{units[u]:.0f} x {name}")
            elif isinstance(source, Node):
                terms.append(f"{units[u]:.0f} x {name}")
            else:
                terms.append(f"{units[u]:.2f} USD/h of {name}")
    sentences = [f"buy {', '.join(priced_configurations)}"] if priced_configurations else []
    sentences += [f"commit to {', '.join(terms)}"] if terms else []
    return ", ".join(sentences) or ("buy nothing" if has_existing else "rent everything")
