"""What gpuplan can be asked, by topic; `api.app` puts the topics together."""
