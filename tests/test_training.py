"""A run on text: its settings, the parts made from them, warm start, imitation, probe.

That each setting reaches what it sets is in test_lm_settings_reach.py.
"""

import copy
import json
import re
from dataclasses import asdict, fields, replace
from math import nan
from types import SimpleNamespace

import pytest
import torch

from grpo_course.files import json_lines
from grpo_course.sampling import Sampler
from grpo_course.text import training
from grpo_course.text.config import (
    GRPOConfig,
    find_preset,
    from_values,
    load_config,
    make_task,
    presets_of,
    spelled_out,
)
from grpo_course.text.evaluation import Scores, sampled_scores
from grpo_course.text.gsm8k import GSM8K, demonstration
from grpo_course.text.lm import CausalPolicy
from grpo_course.text.prompts import as_rollout, encode_prompts
from grpo_course.text.responses import in_template
from grpo_course.text.stories import make_problems
from grpo_course.text.tasks import find_task
from grpo_course.text.tiny import MODELS, make_tiny_model, make_tokenizer
from grpo_course.text.training import (
    first_words,
    imitate_right,
    load_problems,
    make_environment,
    make_start,
    sample_right,
    warm_start,
    watched_problems,
)
from tests.test_tasks import answered

PRESETS = presets_of("gsm8k")
LAPTOP, GPU = PRESETS["sums"], PRESETS["gpu"]
PROBLEMS = make_problems("train", 300, seed=3)


# Settings, to JSON and back


@pytest.fixture
def load(tmp_path):
    """What a file with this content says."""

    def loaded(content, task=None):
        path = tmp_path / "my.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return load_config(path, task)

    return loaded


@pytest.mark.parametrize("name", PRESETS)
def test_presets_go_through_json(name, tmp_path):
    PRESETS[name].save(tmp_path / "config.json")
    again = load_config(tmp_path / "config.json")
    assert spelled_out(again) == spelled_out(PRESETS[name])
    assert make_task(again) == make_task(PRESETS[name])


def test_what_a_file_leaves_out_is_as_in_its_base(load):
    config = load({"base": "gpu", "learning_rate": 1e-6})
    assert config.learning_rate == 1e-6 != GPU.learning_rate
    assert asdict(config) | {"learning_rate": GPU.learning_rate} == asdict(GPU)
    config = load({"base": "sums", "task_settings": {"operands": [2, 5]}})
    assert make_task(config).operands == (2, 5)
    values = asdict(LAPTOP)
    assert spelled_out(load(values)) == spelled_out(LAPTOP)  # which needs no base
    assert load({"learning_rate": 1e-6}) == replace(LAPTOP, learning_rate=1e-6)
    # The task that was asked for goes before that of a file.
    assert load({"base": "pairs"}, "countdown") == presets_of("countdown")["pairs"]


def test_the_first_preset_has_a_name_of_its_own_and_is_the_default():
    for task, name in {"gsm8k": "sums", "countdown": "pairs"}.items():
        first = find_preset(task, None)
        assert next(iter(find_task(task).presets)) == name
        assert find_preset(task, name) == find_preset(task, "default") == first
    with pytest.raises(ValueError, match=r"'gpu' is not known(?s:.*)'pairs'"):
        find_preset("countdown", "gpu")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ("[1, 2]", "must hold one object"),
        ({"base": "gpu", "task": "countdown"}, "base='gpu' is not known.*'pairs'"),
        ({"base": "sums", "task": ["gsm8k"]}, r"task=\['gsm8k'\] is not known"),
        ({"base": "sums", "learning_rat": 1e-4}, "learning_rat"),
        ({"base": "sums", "num_prompts": 0}, "num_prompts"),
        ({"base": "sums", "slips": 0.5}, 'Those of the task stand in "task_settings"'),
        ({"base": "gpu", "lora_rank": 4, "ref_mixture": 0.5}, "lora_rank=4 with"),
    ],
)
def test_a_file_that_is_no_config(load, content, says):
    with pytest.raises(ValueError, match=r"(?s)my\.json.*" + says):
        load(content)


ODD = {
    "num_responses": 1,  # a group of one
    "reward_weights": {"format": -0.1},
    "seed": 10**30,
    "top_p": 1.5,
    "adam_beta1": 1.0,
    "adam_beta2": 1.0,
    "hidden_size": 98,  # no multiple of the four heads
    "vocab_size": 262,
}


@pytest.mark.parametrize("name", [field.name for field in fields(GRPOConfig)])
def test_a_value_that_a_setting_cannot_have_is_told(name):
    """None is below 0, or no number."""
    for value in (-1, nan, ODD.get(name, [1])):
        with pytest.raises(ValueError, match=name):
            GRPOConfig(**{name: value})


def test_a_tokenizer_can_be_made_with_the_smallest_vocabulary():
    tokenizer = make_tokenizer(["one plus one"], GRPOConfig(vocab_size=263).vocab_size)
    assert len(tokenizer) == 263


# What GRPO cannot begin with


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"lora_rank": 4}, "lora_rank=4 needs a model"),
        ({"max_new_tokens": 250}, r"knows 256 positions.*--context-length \d+"),
        ({"reward_weights": {"lengths": 1.0}}, "'lengths' is not known.*'format'"),
        ({"warm_start_batch_size": 41}, "are 40 problems.*--warm-start-batch-size 40"),
    ],
)
def test_a_start_that_cannot_be_made(settings, says):
    config = replace(GRPOConfig(num_problems=40, hidden_size=16), **settings)
    with pytest.raises(ValueError, match=says):
        make_start(config, load_problems(config), show=False)


# The warm start


def small_policy(tokenizer, architecture="qwen2"):
    model = make_tiny_model(
        tokenizer, architecture, hidden_size=16, num_layers=1, num_heads=2
    )
    sampler = Sampler(24, tokenizer.eos_token_id, tokenizer.pad_token_id)
    return CausalPolicy(model, sampler)


@pytest.mark.parametrize("architecture", MODELS)
def test_the_loss_is_that_of_the_library_on_response_tokens(tokenizer, architecture):
    """transformers leaves out the labels -100 and shifts by itself."""
    policy, problems = small_policy(tokenizer, architecture), PROBLEMS[:6]
    questions = [problem.question for problem in problems]
    texts = [demonstration(problem) for problem in problems]
    batch = as_rollout(tokenizer, questions, texts)
    text = torch.cat([batch.prompts, batch.responses[:, 0]], dim=-1)
    real = torch.cat([batch.prompts != tokenizer.pad_token_id, batch.mask[:, 0]], -1)
    labels = torch.where(real, text, -100)
    labels[:, : batch.prompts.shape[-1]] = -100
    expected = policy.model(
        input_ids=text,
        attention_mask=real.long(),
        position_ids=(real.long().cumsum(-1) - 1).clamp(min=0),
        labels=labels,
    ).loss.item()
    config = GRPOConfig(warm_start_steps=1, warm_start_batch_size=6)
    (found,) = warm_start(
        policy, tokenizer, problems, lambda problem, rng: demonstration(problem), config
    )
    assert found == pytest.approx(expected, rel=1e-5)


# What a policy does after its warm start


@pytest.fixture(scope="module")
def trained(tokenizer, easy_problems):
    """A policy that writes what the demonstrations showed it, in a few seconds."""
    sampler = Sampler(24, tokenizer.eos_token_id, tokenizer.pad_token_id)
    made = make_tiny_model(tokenizer, hidden_size=48, seed=1)
    policy = CausalPolicy(made, sampler, torch.Generator().manual_seed(0))
    config = GRPOConfig(warm_start_steps=100, warm_start_learning_rate=5e-3)
    show = GSM8K().demonstration
    losses = warm_start(policy, tokenizer, easy_problems, show, config)
    return policy, losses


@pytest.mark.slow
def test_what_was_learned_is_what_transformers_generates(
    trained, tokenizer, easy_problems
):
    """And rows that ended leave the batch."""
    policy, losses = trained
    assert sum(losses[-10:]) / 10 < 0.25 * losses[0]
    eos, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    prompts = encode_prompts(tokenizer, [p.question for p in easy_problems[:24]])
    assert (prompts == pad).any()
    ours = policy.sample(prompts, 1, greedy=True).responses[:, 0]
    theirs = policy.model.generate(
        input_ids=prompts,
        attention_mask=(prompts != pad).long(),
        do_sample=False,
        max_new_tokens=24,
        eos_token_id=eos,
        pad_token_id=pad,
    )[:, prompts.shape[-1] :]
    width = theirs.shape[-1]
    assert torch.equal(ours[:, :width], theirs)
    assert (ours[:, width:] == pad).all()
    assert (ours == eos).sum() > 12 and len(ours.unique(dim=0)) > 2
    sizes = []
    hook = policy.model.get_output_embeddings().register_forward_hook(
        lambda _, inputs, __: sizes.append(len(inputs[0]))
    )
    policy.sample(prompts[:5], 16)
    hook.remove()
    assert sizes[0] == 80 and sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 40


# Imitating one's own right answers

IMITATION = GRPOConfig(
    num_responses=2,
    warm_start_steps=6,
    warm_start_batch_size=8,
    warm_start_learning_rate=1e-3,
)


@pytest.fixture
def asked(trained, tokenizer, easy_problems):
    """A copy of a policy that is right now and then, and what it is asked."""
    policy = copy.copy(trained[0])
    policy.model = copy.deepcopy(policy.model)
    return policy, make_environment(IMITATION, easy_problems[:128], tokenizer)


@pytest.mark.slow
def test_right_answers_are_kept_and_made_likelier(asked, tokenizer):
    policy, environment = asked
    many = sample_right(policy, environment, 8, seed=5)
    scores = sampled_scores(policy, environment, 8, seed=5)
    rows = zip(environment.problems, scores.texts, scores.accuracy, strict=True)
    for problem, texts, earned in rows:
        expected = {t for t, x in zip(texts, earned, strict=True) if x == 1}
        assert many.get(problem.question, []) == sorted(expected)
    assert many and len(many) < len(environment.problems)  # one is never right
    right = sample_right(policy, environment, IMITATION.num_responses, IMITATION.seed)
    assert len(right) < len(many)
    with pytest.raises(ValueError, match=f"There are {len(right)} problems,"):
        imitate_right(replace(IMITATION, warm_start_batch_size=len(right) + 1), *asked)
    pairs = [(question, text) for question, texts in right.items() for text in texts]
    kept = as_rollout(tokenizer, *zip(*pairs, strict=True))
    before = policy.log_probs(kept).sum().item()
    losses = imitate_right(IMITATION, policy, environment)
    assert len(losses) == IMITATION.warm_start_steps
    assert policy.log_probs(kept).sum().item() > before + 1


def test_half_right_is_not_right(tokenizer, easy_problems, monkeypatch):
    environment = make_environment(IMITATION, easy_problems[:16], tokenizer)
    earned = {"accuracy": torch.full((16, 2), 0.5), "format": torch.ones(16, 2)}
    earned["accuracy"][3] = 1.0
    scores = Scores(earned, [["b", "a"]] * 16, [""] * 16)
    monkeypatch.setattr(training, "sampled_scores", lambda *_, seed: scores)
    question = environment.problems[3].question
    assert sample_right(small_policy(tokenizer), environment) == {question: ["a", "b"]}


# Held-out problems


@pytest.mark.parametrize(
    ("texts", "settings", "told"),
    [
        ("?", {}, r"no response holds <answer>.*--warm-start-steps 6\b.*--num-resp"),
        ("?", {"model": "m"}, "no response holds <answer>.*a worked example in --sys"),
        (in_template("?", "x"), {}, "is too weak: no group is mixed.*easier problems"),
        ("gold", {}, r"leaves nothing.*harder problems.*--warm-start-steps 1\."),
        ("gold", {"model": "m"}, "leaves nothing.*help: harder problems, or a higher"),
        ("both", {}, "^$"),
    ],
)
def test_a_first_rollout_that_teaches_nothing_says_what_may_help(
    tokenizer, easy_problems, texts, settings, told
):
    config = from_values({"base": "sums", "warm_start_steps": 3} | settings)
    environment = make_environment(config, easy_problems[:3], tokenizer)
    right = [demonstration(problem) for problem in environment.problems]
    groups = {"gold": [[gold, gold] for gold in right]}
    groups["both"] = [[gold, "?"] for gold in right]
    said = groups.get(texts, [[texts, texts]] * 3)
    environment.reward(answered(environment, environment.ask(range(3)), said))
    assert re.search(told, first_words(config, environment)), texts


def test_a_run_is_watched_on_its_validation_split_or_its_first(monkeypatch):
    config = GRPOConfig(eval_problems=7)
    expected = make_task(config).problems("validation", 7, config.seed)
    assert watched_problems(config) == expected and len(expected) == 7
    assert watched_problems(GRPOConfig(held_out_every=0)) == []
    splits = SimpleNamespace(splits=("other", "third"))
    monkeypatch.setattr(training, "make_task", lambda config: splits)
    monkeypatch.setattr(training, "load_problems", lambda *_: [])
    with pytest.raises(ValueError, match=r"split 'other'.*--held-out-every 0"):
        watched_problems(GRPOConfig())


@pytest.mark.slow
def test_a_preset_for_a_gpu_trains_a_given_model_on_given_rows(tmp_path):
    """Small and random, but bfloat16, checkpointing and the long prompt are its own."""
    problems = make_problems("train", 40, 0, operands=(1, 4), steps=(1,))
    config = PRESETS["gpu-smollm2"]
    told = [p.question + demonstration(p) for p in problems]
    tokenizer = make_tokenizer([config.system_prompt, *told])
    sizes = {"hidden_size": 16, "num_heads": 2, "context_length": 1024}
    model = make_tiny_model(tokenizer, "llama", **sizes)
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "model")
    rows = [{"question": p.question, "answer": p.solution} for p in problems]
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text(json_lines(rows), encoding="utf-8")
    small = replace(
        config,
        model=str(tmp_path / "model"),
        task_settings={"data": str(tmp_path)},
        num_epochs=2,
        num_prompts=2,
        max_new_tokens=6,
    )
    given = load_problems(small)
    made, words = training.make_model(small, given)
    environment = make_environment(small, given, words)
    policy, history = training.train_policy(small, made, words, environment)
    assert policy.model.config.model_type == "llama"
    assert len(history.curve("accuracy")) == 2
    assert history.curve("loss").isfinite().all()
