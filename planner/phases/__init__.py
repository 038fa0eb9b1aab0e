"""Plans of several phases: a job that moves between configurations, and the proof that no other plan is cheaper."""
