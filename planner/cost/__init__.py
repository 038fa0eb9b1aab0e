"""What a configuration costs and how long it takes, preemption included."""
