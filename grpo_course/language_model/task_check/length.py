"""Whether a response may be as long as the right one."""

from grpo_course.language_model.task_check.look import Look
from grpo_course.language_model.template import conversation_text
from grpo_course.language_model.tokenizer import make_tokenizer

SPARED = 0.1  # of the problems, whose right response may be cut off


def length_fault(look: Look) -> str:
    """A right response that is cut off before its end. A given model is let off."""
    config, gold = look.config, look.task.gold
    if config.model is not None:
        return ""
    texts = [
        conversation_text(p.question, gold(p), config.system_prompt)
        for p in look.problems
    ]
    tokenizer = make_tokenizer(texts, config.vocab_size)
    rows = tokenizer(look.golds, add_special_tokens=False)["input_ids"]
    lengths = [len(row) + 1 for row in rows]  # the end is a token, too
    cut = sum(length > config.max_new_tokens for length in lengths) / len(lengths)
    if cut <= SPARED:
        return ""
    return (
        f"The right response has up to {max(lengths)} tokens, and max_new_tokens="
        f"{config.max_new_tokens} cuts {cut:.0%} of them off: they can never be "
        "rewarded. Raise it in the preset, or let gold say less."
    )
