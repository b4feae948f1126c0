"""The model against torch's own GRU, and its seed axis against single models."""

import pytest
import torch

from grpo_course.sequences import TinyLM


def as_torch(model):
    """torch.nn.GRU with the weights of a model without a seed axis."""
    gru = torch.nn.GRU(model.hidden_size, model.hidden_size, batch_first=True)
    with torch.no_grad():
        gru.weight_ih_l0.copy_(model.input_weights.T)
        gru.weight_hh_l0.copy_(model.hidden_weights.T)
        gru.bias_ih_l0.copy_(model.input_bias[0])
        gru.bias_hh_l0.copy_(model.hidden_bias[0])
    return gru


def test_it_is_the_gru_of_torch():
    model = TinyLM(7, hidden_size=5)
    tokens = torch.randint(7, (4, 6), generator=torch.Generator().manual_seed(0))
    states, _ = as_torch(model)(model.embedding[tokens])
    torch.testing.assert_close(model.read(tokens), states, atol=1e-6, rtol=0)
    expected = states @ model.head_weights + model.head_bias
    torch.testing.assert_close(model(tokens), expected, atol=1e-6, rtol=0)


def test_seeds_side_by_side_are_the_single_models():
    tokens = torch.tensor([[1, 2, 3], [4, 0, 0]])
    together = TinyLM(5, hidden_size=4, seeds=(3, 0))
    alone = TinyLM(5, hidden_size=4)
    torch.testing.assert_close(together(tokens)[1], alone(tokens))
    own = torch.stack([tokens.flip(0), tokens])  # other tokens for each seed
    torch.testing.assert_close(together(own)[1], alone(tokens))
    assert not torch.allclose(together(tokens)[0], alone(tokens))


def test_reading_can_be_carried_on():
    model, tokens = TinyLM(5), torch.tensor([[1, 2, 3, 4]])
    first = model.read(tokens[:, :2])[:, -1]
    torch.testing.assert_close(
        model.read(tokens[:, 2:], first), model.read(tokens)[:, 2:]
    )


def test_what_is_not_real_leaves_the_state_alone():
    model, tokens = TinyLM(5), torch.tensor([[0, 0, 3, 4]])
    padded = model.read(tokens, real=torch.tensor([[False, False, True, True]]))
    torch.testing.assert_close(padded[:, -1], model.read(tokens[:, 2:])[:, -1])
    assert not torch.allclose(padded[:, -1], model.read(tokens)[:, -1])


def test_no_seed_is_an_error():
    with pytest.raises(ValueError, match=r"seeds=\(\).*one at least: seeds=\(0,\)"):
        TinyLM(5, seeds=())


@pytest.mark.parametrize("tokens", [[[5]], [[-1]], [[1.0]]])
def test_tokens_outside_the_vocabulary_are_named(tokens):
    with pytest.raises(ValueError, match=r"tokens holds.*numbers 0 to 4"):
        TinyLM(5)(torch.tensor(tokens))
