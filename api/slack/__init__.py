"""The Slack interface: commands, a form and buttons, acknowledged at once and answered when the plan is ready."""
