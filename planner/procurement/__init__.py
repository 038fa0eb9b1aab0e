"""Own, commit or rent: machines to buy, commitments to make and capacity to rent for a forecast of jobs."""
