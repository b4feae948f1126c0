"""How likely tokens were: their log-probabilities under given logits."""

from torch import Tensor

from grpo_course.algorithm.validation import require_same_shape


def token_log_probs(logits: Tensor, tokens: Tensor, temperature: float = 1.0) -> Tensor:
    """Log-probability of each token under the logits beside it: [... pos].

    Logits [... pos vocab] that already stand where their token does, int [... pos].
    `temperature` is the sampler's; with another one this is not the policy that
    sampled. The softmax is taken in float32, whatever the logits come in.
    Raises ValueError for a temperature that is not above 0 and for logits that do not
    stand beside the tokens.
    """
    require_same_shape("tokens", tokens, "logits[..., 0]", logits[..., 0])
    require_temperature(temperature)
    log_probs = (logits.float() / temperature).log_softmax(dim=-1)
    return log_probs.gather(dim=-1, index=tokens[..., None]).squeeze(-1)


def shifted_log_probs(logits: Tensor, tokens: Tensor) -> Tensor:
    """Log-probability of each token of a text but the first: [... pos-1].

    Logits [... pos vocab] of a causal model on tokens, int [... pos]: those at t
    score token t + 1, and the first token has nothing before it.
    """
    return token_log_probs(logits[..., :-1, :], tokens[..., 1:])


def require_temperature(temperature: float) -> None:
    """Check that a temperature divides logits sensibly."""
    if not temperature > 0:
        raise ValueError(
            f"temperature={temperature} is out of range: it must be above 0. "
            "For the likeliest token at each step pass greedy=True to the sampler."
        )
