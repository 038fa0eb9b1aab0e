"""What exists and what it costs: vocabulary, facts, storage. Imports nothing of ours."""
