"""Cost and duration of configurations, preemption included."""
