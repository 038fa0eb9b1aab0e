"""Own, commit or rent: which machines to buy, what to commit to and what to rent for a forecast of jobs."""
