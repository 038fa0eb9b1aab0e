"""Published laws of the loss of a dense language model: L(N, D) = E + A / N^alpha + B / D^beta.

N are parameters, D tokens seen once; the loss is in nats per token on the data of Hoffmann et al. (MassiveText).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LossLaw:
    """One fit: the entropy of the text, and how fast parameters and tokens approach it."""

    name: str
    source: str
    entropy: float
    parameters_factor: float
    parameters_exponent: float
    tokens_factor: float
    tokens_exponent: float

    def loss(self, parameters: float, tokens: float) -> float:
        """Nats per token of a model of so many parameters after so many tokens."""
        of_size: float = self.parameters_factor / parameters**self.parameters_exponent
        of_tokens: float = self.tokens_factor / tokens**self.tokens_exponent
        return self.entropy + of_size + of_tokens

    def best_parameters(self, flops: float) -> float:
        """Parameters of least loss for a compute budget, at 6 FLOPs per parameter and token (Hoffmann 2022, eq. 4)."""
        both = self.parameters_exponent + self.tokens_exponent
        ratio = (self.parameters_exponent * self.parameters_factor) / (self.tokens_exponent * self.tokens_factor)
        exponent: float = self.tokens_exponent / both
        return float(ratio ** (1 / both) * (flops / 6) ** exponent)


#: Hoffmann et al., Training Compute-Optimal Large Language Models (arXiv 2203.15556), approach 3, eq. 10, as rounded there.
HOFFMANN = LossLaw(
    name="Hoffmann 2022",
    source="arXiv 2203.15556, approach 3",
    entropy=1.69,
    parameters_factor=406.4,
    parameters_exponent=0.34,
    tokens_factor=410.7,
    tokens_exponent=0.28,
)
#: Besiroglu et al., Chinchilla Scaling: A replication attempt (arXiv 2404.10102), the same runs fitted again.
BESIROGLU = LossLaw(
    name="Besiroglu 2024",
    source="arXiv 2404.10102, a re-fit of the same runs",
    entropy=1.8172,
    parameters_factor=482.01,
    parameters_exponent=0.3478,
    tokens_factor=2085.43,
    tokens_exponent=0.3658,
)
LAWS = (HOFFMANN, BESIROGLU)
#: The runs that both were fitted on: up to 16 B parameters and 500 B tokens (Hoffmann 2022, section 3).
MOST_FITTED_PARAMETERS, MOST_FITTED_TOKENS = 16e9, 500e9
