"""Sources and answers in a few words."""

import numpy as np
from numpy.typing import NDArray

from planner.buying.forecast import Machine
from planner.buying.model import Model
from planner.buying.served import Served, Source, is_there
from planner.buying.terms import Node, Spending

Floats = NDArray[np.float64]


def source_name(given: Served, source: Source) -> str:
    """`HGX-H100-8`, `p5.48xlarge (reserved_3y)`, `savings_plan_1y on p5 in us-east-1`."""
    match source:
        case Machine():
            return source.own.instance_type.name if source.own else source.name
        case Node():
            offer = given.market.columns.offer(int(given.market.snapshot.original[source.place]))
            return f"{offer.instance_type} in {offer.region} ({offer.price_kind})"
        case Spending():
            what = [source.pool.price_kind, f"on {source.pool.family}" if source.pool.family else "on any machine"]
            what += [f"in {source.pool.region}"] if source.pool.region else []
            return " ".join(what)


def in_words(given: Served, model: Model, units: Floats) -> str:
    """`buy 2 x HGX-H100-8, commit to 3 x p5.48xlarge (reserved_3y)`, or `rent everything`."""
    bought, terms, there = [], [], False
    for u, each in enumerate(model.units):
        source = given.sources[each.source]
        if is_there(source):
            there = True
        elif units[u] > 1e-9:
            name = source_name(given, source)
            if isinstance(source, Machine):
                bought.append(f"{units[u]:.0f} x {name}")
            elif isinstance(source, Node):
                terms.append(f"{units[u]:.0f} x {name}")
            else:
                terms.append(f"{units[u]:.2f} USD/h of {name}")
    said = [f"buy {', '.join(bought)}"] if bought else []
    said += [f"commit to {', '.join(terms)}"] if terms else []
    return ", ".join(said) or ("buy nothing" if there else "rent everything")
