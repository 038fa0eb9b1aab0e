"""Why a plan is what it is: what else there was, what would change it, what it assumes, and why there may be none."""
