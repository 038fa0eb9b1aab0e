"""The single-configuration strategy: the cheapest configuration that meets deadline and budget, with its proof.

Sets and data (one column k per screened configuration: offer x node count, at its best layout)
    c_k, t_k   expected cost in USD, and hours at the requested confidence
    D, B       deadline in hours and budget in USD, where given
Model
    minimise sum_k c_k x_k   subject to   sum_k x_k = 1,  sum_k t_k x_k <= D,  sum_k c_k x_k <= B,  x_k in {0, 1}

Enumeration finds the optimum, since every configuration is evaluated. The solver does not get columns that exceed
a limit on their own, because x_k = 0 for them in every feasible point. For the rest the linear relaxation has the
columns as its vertices, so it is exact without branching. `choice_model` solves it in HiGHS and derives the bound of the
certificate by weak duality. `relaxed_choice` solves the mix of all columns, whose duals price one more hour, dollar or kg.
"""
