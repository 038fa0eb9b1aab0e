"""gpuplan in Slack: commands, a form and buttons, each acknowledged at once and answered when its plan is there."""
