"""Which language models of transformers may read a prompt once for its group.

Every causal model that transformers knows, made small by its config's own names and
filled with random weights: short prompts padded on the left, sampled and scored, and
each text scored once more alone, by the model's own forward pass. A table says which
road each takes, how far the scores are off (nats), and why. Run it on a new release to
see what broke:

python benchmarks/architectures.py [NAME ...]
"""

import math
import sys
import warnings
from collections import Counter
from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import Any

import torch
from torch import Generator
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

from grpo_course.sampling import Sampler, pad_rows
from grpo_course.text.lm import CausalPolicy

VOCABULARY, EOS, PAD = 60, 3, 0
PROMPTS = [[5, 9, 11], [4, 8, 15, 16, 23], [7, 33, 21, 20], [42, 2, 1]]
EXACT = 1e-6  # nats: what rounding in float32 explains in models so small

# What makes a config small, by the end of a setting's name; the first that fits.
SIZES = {
    "vocab_size_per_layer_input": VOCABULARY,
    "vocab_size": VOCABULARY,
    "qk_head_dim": 16,
    "rope_head_dim": 8,
    "rope_dim": 8,
    "rotary_dim": 4,
    "head_dim": 8,
    "head_size": 8,
    "lora_rank": 8,
    "num_hidden_layers": 2,
    "num_layers": 2,
    "n_layer": 2,
    "n_layers": 2,
    "decoder_layers": 2,
    "num_kv_shared_layers": 0,
    "num_key_value_heads": 2,
    "num_kv_heads": 2,
    "attention_heads": 4,
    "n_head": 4,
    "n_heads": 4,
    "num_heads": 4,
    "key_heads": 2,
    "value_heads": 2,
    "intermediate_size": 64,
    "ffn_dim": 64,
    "n_inner": 64,
    "ffn_hidden_size": 64,
    "embedding_size": 32,
    "hidden_size": 32,
    "hidden_size_per_layer_input": 8,
    "expand": 1,
    "d_head": 8,
    "headdim": 8,
    "mamba_heads": 4,
    "d_model": 32,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "n_embd": 32,
    "d_kv": 8,
    "d_ff": 64,
    "dim": 32,
    "experts_per_tok": 2,
    "experts_per_token": 2,
    "local_experts": 4,
    "routed_experts": 4,
    "num_experts": 4,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "sliding_window": 4,
    "window_size": 4,
    "state_size": 4,
    "ssm_state_size": 4,
    "d_state": 4,
    "n_groups": 1,
    "chunk_size": 4,
    "dropout": 0.0,
    "pdrop": 0.0,
    "dropout_prob": 0.0,
}


def small(config: PretrainedConfig) -> PretrainedConfig:
    """The config with small sizes; of the kinds of its layers, one each."""
    for name, value in vars(config).items():
        size = next((size for end, size in SIZES.items() if name.endswith(end)), None)
        if isinstance(value, PretrainedConfig):
            small(value)
        elif size is not None and (value is None or type(value) in (int, float)):
            with suppress(AttributeError):  # what is made up of others
                setattr(config, name, size if value is None else min(value, size))
    if getattr(config, "kv_lora_rank", None):  # latent attention shares no heads
        config.num_key_value_heads = config.num_attention_heads
    if getattr(config, "attn_layer_indices", None):
        config.attn_layer_indices = [1]
    for name in ("layer_types", "block_types", "layers_block_type"):
        kinds = [*dict.fromkeys(getattr(config, name, None) or ())]
        with suppress(AttributeError):
            if not kinds:
                continue
            setattr(config, name, kinds if len(kinds) > 1 else 2 * kinds)
            config.num_hidden_layers = max(2, len(kinds))
    for name, value in {"is_decoder": True, "pad_token_id": PAD}.items():
        if hasattr(config, name):
            setattr(config, name, value)
    config.eos_token_id = EOS
    with suppress(Exception):  # some want a BOS
        config.bos_token_id = None
    return config


def measured(name: str) -> dict[str, Any]:
    """The road that a model takes, what it printed, and how far its scores are off."""
    torch.manual_seed(0)
    try:
        config = small(AutoConfig.for_model(name))
        model = AutoModelForCausalLM.from_config(config).eval()
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(1.5)
        alone_scores(model, torch.tensor(PROMPTS[0]), 1)
    except Exception as error:
        return {"road": "not made", "why": f"{type(error).__name__}: {error}"}
    told = StringIO()
    sampler = Sampler(6, eos=EOS, pad=PAD, temperature=1.2)
    try:
        with redirect_stdout(told):
            policy = CausalPolicy(model, sampler, Generator().manual_seed(0))
    except ValueError as error:
        return {"road": "refused", "why": str(error)}
    try:
        rollout = policy.sample(pad_rows(PROMPTS, PAD), 4)
        with torch.no_grad():
            scores = policy.log_probs(rollout)
        off = [(scores - rollout.sampled_log_probs)[rollout.mask].abs().max().item()]
        for i, prompt in enumerate(PROMPTS):
            for j, kept in enumerate(rollout.mask[i]):
                said = rollout.responses[i, j][kept]
                text = torch.cat([torch.tensor(prompt), said])
                alone = alone_scores(model, text, len(prompt), sampler.temperature)
                off.append((scores[i, j][kept] - alone).abs().max().item())
    except Exception as error:
        return {"road": "fails", "why": f"{type(error).__name__}: {error}"}
    why = told.getvalue().partition("here: ")[2].strip()
    road = "once" if policy.read_once else "slow"
    return {"road": road, "off": max(off), "why": why}


@torch.no_grad()
def alone_scores(
    model: Any, text: torch.Tensor, start: int, temperature: float = 1.0
) -> torch.Tensor:
    """The scores of a text's tokens from `start` on, without padding or cache."""
    logits = model(input_ids=text[None], use_cache=False).logits[0, start - 1 : -1]
    logs = (logits.float() / temperature).log_softmax(-1)
    return logs.gather(-1, text[start:, None]).squeeze(-1)


def main(names: list[str]) -> None:
    logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    roads: Counter[str] = Counter()
    for name in names or sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        row = measured(name)
        off = row.get("off", 0.0)
        wrong = off > EXACT or math.isnan(off)
        roads["wrong" if wrong else row["road"]] += 1
        why = " ".join(row["why"].split())[:100]
        print(f"{name:26} {row['road']:9} {off:8.1e} {'!' if wrong else ' '} {why}")
    print(dict(roads))


if __name__ == "__main__":
    main(sys.argv[1:])
