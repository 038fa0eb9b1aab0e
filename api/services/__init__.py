"""The use cases of gpuplan, one class each; `gpuplan.api.services.composition` composes them."""
