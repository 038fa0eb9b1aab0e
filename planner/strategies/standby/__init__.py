"""The standby strategy: spot machines until the deadline only just leaves time for an on-demand standby.

Sets and data (spot configurations k, standby configurations m of the same migration class, checkpoint intervals tau)
    f W_k    hours of all the work on k; f is the lognormal error of the estimate, one factor for both machines
    f U_m    hours of all the work on the standby
    lambda   preemptions per hour of all nodes of k
    d, R, c  hours of a checkpoint write, of a restart, and of the changeover to the standby
    p_k, p_m USD per hour of all nodes; moving_km is checkpoint and data egress, paid only if the standby is called
    D, B     deadline in hours and budget in USD
Policy
    a segment of tau hours and its checkpoint starts on spot only while the standby could still finish after it fails.
    Otherwise the standby is called, at that moment, and finishes by D.
Decision
    the triple (k, m, tau), with tau among Young's interval and its halves
Model
    minimise    E[cost on spot] + E[cost on standby], over preemptions and over f
    confidence: P(set-up + tau + d + c + f U_m <= D) >= the requested confidence
    budget:     the cost is at most B
`standby_switching` derives the expectations by Wald's identity.

What the search leaves out, and the proof of each cut
    1. Spot runs that meet the deadline on their own: they are candidates as single configurations.
    2. Standbys that another one in the same region and of the same stack equals or beats in hours, price and hourly
       storage (`worth_a_standby`): the cost rises in each of these.
    3. Pairs above the best known plan by `standby_bound`: a closed-form lower bound, minimised over the share of the
       work that is done on spot. It is linear in this share, so its minimum lies at an end of the feasible range.
    4. Runs that have the same dynamics as a run already priced, and are no cheaper in any price.
The other runs are priced exactly, with the full distribution of losses (`exact_standby_run`), the most promising by a
moment approximation first. The approximation only sets the order and proves nothing. At most `MOST_EXACT` runs are priced;
`PairSearch.left_open_usd` is a lower bound on the pairs beyond, and the certificate states it.
"""
