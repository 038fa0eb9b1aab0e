"""Why a plan is what it is: compared with a named supply, part by part, as figures and as sentences."""
