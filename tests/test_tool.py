"""A task with a tool: turns of the policy's with the tool's words between them."""

from dataclasses import replace
from typing import ClassVar

import pytest
import torch

from grpo_course.checks import settings
from grpo_course.formulas import compute_loss
from grpo_course.sampling import Sampler, prompt_mask
from grpo_course.text.evaluation import greedy_scores
from grpo_course.text.models import load_model, load_tokenizer, save_model
from grpo_course.text.prompts import (
    PLAIN_TEMPLATE,
    decode_responses,
    prompt_text,
    reply_tokens,
)
from grpo_course.text.responses import chat_messages, completion_texts
from grpo_course.text.smollm2 import Calculator
from grpo_course.text.tasks import Problem
from grpo_course.text.tiny import make_tiny_model, make_tokenizer
from grpo_course.text.training import (
    from_values,
    load_problems,
    make_environment,
    make_policy,
    train_policy,
)


def even(completions, **_):
    """A reward that random text earns half of the time."""
    return [float(len(text) % 2 == 0) for text in completion_texts(completions)]


@settings()
class Echo(Calculator):
    """Its tool answers 12 to most turns, whatever they say."""

    rewards: ClassVar = {"even": (even, 1.0)}
    measures: ClassVar = ("even",)

    def reply(self, said):
        return None if len(said) % 3 == 2 else "12"


WIDTH = 40
SMALL = {
    "base": "default",
    "task": f"{__name__}:Echo",
    "device": "cpu",
    "max_new_tokens": WIDTH,
    "num_prompts": 3,
    "micro_batch_size": 3,
    "num_responses": 4,
    "num_epochs": 2,
    "num_problems": 6,
    "warm_start_steps": 0,
    "kl_penalty": 0.1,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny random model that ends its turns soon: many tokens are ends."""
    task = Calculator()
    problems = task.problems("train", 60, 0)
    tokenizer = make_tokenizer([p.question + task.gold(p) for p in problems], 300)
    how = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "context_length": 1024}
    model = make_tiny_model(tokenizer, "llama", **how)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(5)  # else all tokens are about as likely
    rest = range(40, 300, 5)
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, *rest]
    out = tmp_path_factory.mktemp("model")
    save_model(model, tokenizer, out)
    return out


@pytest.fixture
def parts(folder):
    config = from_values(SMALL | {"model": str(folder)})
    tokenizer, problems = load_tokenizer(folder), load_problems(config)
    model = load_model(folder)
    return config, model, tokenizer, make_environment(config, problems, tokenizer)


def test_the_calculator_says_what_the_first_sum_is():
    task = Calculator()
    sums = {"7 + 5": "12", "So 28-16 = 3.": "12", "3 * 4, 1 + 1": "12", "2 - 9": "-7"}
    for said, value in sums.items():
        assert task.reply(said) == value
    for said in ("Answer: 12", "7 + 5 = 12. Answer: 12", "7 +", "", "7 and 5"):
        assert task.reply(said) is None
    asked = task.opening("You add.")
    turns = [m["content"] for m in asked[1:]]
    assert [task.reply(said) for said in turns[1::4]] == turns[2::4]


@pytest.mark.parametrize("plain", [False, True])
def test_its_words_stand_where_a_message_of_the_user_s_would(parts, plain):
    _, _, tokenizer, _ = parts
    if plain:
        tokenizer.chat_template = PLAIN_TEMPLATE
    turn = [*tokenizer("7 + 5", add_special_tokens=False).input_ids]
    turn += [tokenizer.eos_token_id]
    opening = [*chat_messages("How many?"), {"role": "assistant", "content": "7 + 5"}]
    whole = prompt_text(tokenizer, "12", opening)
    before = prompt_text(tokenizer, "How many?", None)
    behind = tokenizer.decode(reply_tokens(tokenizer, Calculator(), turn))
    said = "7 + 5" if plain else "7 + 5<|im_end|>"
    assert before + said + behind == whole
    assert reply_tokens(tokenizer, Calculator(), turn[1:]) == []


@pytest.mark.parametrize("read_once", [True, False])
@pytest.mark.parametrize("greedy", [True, False])
def test_turns_are_written_noted_masked_and_scored(parts, read_once, greedy):
    _, model, tokenizer, environment = parts
    config, pad = parts[0], tokenizer.pad_token_id
    policy = make_policy(config, model, tokenizer)
    policy.read_once = read_once
    prompts = environment.prompts(0)
    rollout = policy.sample(prompts, 4, greedy)
    assert rollout.responses.shape == (3, 4, WIDTH)
    torch.testing.assert_close(
        policy.log_probs(rollout), rollout.sampled_log_probs, atol=2e-5, rtol=1e-5
    )
    ends, task, turns = [*policy.sampler.eos], Echo(), 0
    texts = decode_responses(tokenizer, rollout)
    for i, j in torch.cartesian_prod(torch.arange(3), torch.arange(4)).tolist():
        tokens, mask = rollout.responses[i, j].tolist(), rollout.mask[i, j].tolist()
        asked = prompts[i][prompt_mask(prompts, pad)[i]].tolist()
        at = 0
        while True:  # read it as it was written: a turn, the tool, a turn
            stop = next((k for k in range(at, WIDTH) if tokens[k] in ends), WIDTH - 1)
            assert all(mask[at : stop + 1])
            if greedy:  # what the model writes at once behind what was read
                own = Sampler(stop + 1 - at, policy.sampler.eos, pad)
                read = torch.tensor([asked + tokens[:at]])
                written, _ = policy.write(read, 1, True, own)
                assert written[0, 0].tolist() == tokens[at : stop + 1]
            over = tokens[stop] in ends
            reply = reply_tokens(tokenizer, task, tokens[at : stop + 1]) if over else []
            at = min(stop + 1 + len(reply), WIDTH)
            assert not any(mask[stop + 1 : at])
            assert tokens[stop + 1 : at] == reply[: at - stop - 1]
            turns += bool(reply)
            if not reply or at == WIDTH:
                break
        assert rollout.finished[i, j] == (over and not reply)
        assert not any(mask[at:])
        assert tokens[at:] == [pad] * (WIDTH - at)
        if at < WIDTH and turns:
            assert ("user\n12" in texts[i][j]) == (not all(mask[:at]))
    assert turns > 3 and not rollout.mask.all() and not rollout.finished.all()
    assert greedy or rollout.finished.any()


def test_nothing_is_learned_from_the_tool_s_words(parts):
    config, model, tokenizer, environment = parts
    policy = make_policy(config, model, tokenizer)
    rollout = policy.sample(environment.prompts(0), 4)
    scores = policy.log_probs(rollout)
    assert (scores[~rollout.mask] == 0).all() and (scores[rollout.mask] < 0).all()
    first = rollout.mask.cummin(dim=-1).values  # the turns before the tool's first word
    assert (rollout.mask & ~first).any()
    alone = policy.log_probs(replace(rollout, mask=first))
    torch.testing.assert_close(alone[first], scores[first])


def test_the_loop_trains_and_an_evaluation_has_its_turns(parts):
    config, model, tokenizer, environment = parts
    before = {k: v.clone() for k, v in model.state_dict().items()}
    _, history = train_policy(*parts)
    mask = environment.seen[0].mask  # of the last epoch
    own = mask.sum(dim=-1).float().mean()
    assert history.final("mean_length") == own < mask.any(dim=1).sum(dim=-1).max()
    assert any(not torch.equal(before[k], v) for k, v in model.state_dict().items())
    policy = make_policy(config, model, tokenizer)
    assert "12" in "".join(t for (t,) in greedy_scores(policy, environment).texts)


@pytest.mark.slow
def test_trl_samples_masks_and_weighs_as_the_loop_does(parts, folder, tmp_path):
    pytest.importorskip("trl", reason="TRL is the optional extra `scale`")
    from grpo_course.text import trl as bridge

    config, _, tokenizer, _ = parts
    config = replace(config, kl_penalty=0.0)
    problems = [Problem(p.question, p.answer) for p in load_problems(config)]
    told = bridge.trl_settings(config, tmp_path) | {"max_steps": 1}
    args = bridge.to_trl_config(config, **told)
    trainer = bridge.make_trainer(config, args, folder, problems)
    rows = [trainer.train_dataset[i // 4] for i in range(12)]
    trainer.model.train()
    seen = trainer._generate_and_score_completions(rows)
    policy = make_policy(config, load_model(folder), tokenizer)
    asked = seen["prompt_ids"]
    ours = policy.sample(asked, 1)
    width, trains = seen["completion_ids"].shape[-1], trainer.model.training
    mask = ours.mask[:, 0, :width]
    counted = (seen["completion_mask"] * seen["tool_mask"]).bool()
    assert torch.equal(counted, mask) and (~mask).any() and trains
    assert torch.equal(seen["completion_ids"][mask], ours.responses[:, 0, :width][mask])
    deltas = seen["advantages"].view(3, 4)
    new = policy.log_probs(ours)[:, 0, :width].view(3, 4, width)
    loss = compute_loss(new, deltas, "clipped", new.detach(), mask=mask.view(3, 4, -1))
    loss.backward()
    trainer.current_gradient_accumulation_steps = 1  # which train() would set
    trainer._compute_loss(trainer.model, seen).backward()
    theirs = dict(trainer.model.named_parameters())
    for name, weight in policy.model.named_parameters():
        torch.testing.assert_close(weight.grad, theirs[name].grad, atol=3e-5, rtol=1e-3)
