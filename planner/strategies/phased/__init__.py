"""The two-phase strategy: a job that starts on one configuration and moves once to another.

Sets and data (one column k per configuration; all candidates of all markets, node counts included)
    cost_k(x)   expected cost in USD of doing share x of the work on k: set-up, billing steps and minimum, preemption,
                storage, power, and the write of the last checkpoint if another phase follows
    hours_k(x)  hours of that phase at the requested confidence
    move_ij     checkpoint egress and data egress from the region of i to that of j (0 within a region), in USD
    D, B        deadline in hours and budget in USD, where given
Decision
    an ordered pair (i, j) of one migration class (same software stack and precision), and the share x of the work on i,
    in steps of 1/100,000
Model
    minimise    cost_i(x) + cost_j(1 - x) + move_ij
    deadline:   hours_i(x) + hours_j(1 - x) + hours of the move and of waits for free windows <= D
    budget:     the cost is at most B

What the search leaves out, and the proof of each cut (each module states its own in full)
    1. All pairs: `sequence_linear_bounds.least_usd`. A second phase adds its start to a cost that no mix of columns can undercut.
    2. Columns: `linear_bounds` gives affine under-estimators A + B x of cost and a + b x of hours. `phase_bounds` adds
       the deadline with a Lagrange multiplier mu (USD per hour). Weak duality holds for every mu >= 0, so a column
       whose best pair exceeds the best known plan at one mu is in no cheaper plan.
    3. Pairs: the linear programme of a pair has a closed form; a pair above the best known plan is left out.
    4. Shares: `work_shares` splits ranges of x (branch and bound). Costs and hours rise with the share, so the smallest
       shares of a range bound it from below. Plans are priced exactly, with the full cost breakdown.
    5. Dominated offers: only a cheaper move can make them part of the optimum, so `dominated_offer_recheck` looks again
       at the pairs whose bound without moves stays below the best plan.
Limits on memory and time can leave pairs uncompared. `Searched.left_usd` is then a lower bound on their cost, and the
certificate (`optimality_proof`) states it. `phase_model` is a second opinion: a mixed-integer programme over the same
linear bounds, solved by HiGHS.

There is no third phase. Over 400 varied jobs no plan of three phases was the cheapest (docs/adr/0004). It can be cheaper in
constructed cases: an owned machine with free windows before and after a rented run, or rented, owned, then rented machines
with 10.6 %, 1.9 % and 87.5 % of the work.
"""
