"""Defects in what is written, what is masked and what is scored."""

from grpo_course.classroom.hunt.defect import Defect

SCORES = (
    "        log_probs = (logits[:, :-1] / self.settings.temperature).log_softmax(-1)\n"
)
PAY = "        texts, rewards = self.pay(problems, responses)\n"

TOKENS = [
    Defect(
        cause="temperature missing from the scores",
        complaint="At a temperature of 0.4 my run ends with about twice the entropy "
        "of a colleague's in the log, and the rewards are alike.",
        first_look="entropy of the log beside a few samples, at two temperatures",
        shows="an entropy in the log that does not fit what was sampled",
        probe="own_words_look_likely",
        why="Sampled at temperature T, scored at 1: the scores are those of another "
        "policy than the one that wrote.",
        thread="huggingface/trl #3029",
        edits=((SCORES, "        log_probs = logits[:, :-1].log_softmax(-1)\n"),),
        settings={"temperature": 0.4},
        knob="temperature: at 1 nothing is wrong",
    ),
    Defect(
        cause="attention mask left out of the scores",
        complaint="The entropy in my log is one and a half to three times a "
        "colleague's in the first rollout, and stays above it.",
        first_look="old scores of short and of long prompts in one batch",
        shows="scores that depend on how much padding stands before a prompt",
        probe="padding_leaves_no_trace",
        why="Padding is read like a token, so a short prompt is scored as the "
        "continuation of a row of padding.",
        thread="huggingface/trl #2708",
        edits=(
            ("self.model(batch.tokens, batch.attention)", "self.model(batch.tokens)"),
        ),
        knob="padding: with prompts of one length nothing is wrong",
    ),
    Defect(
        cause="responses encoded anew from their text",
        complaint="Before any training my log says nearly twice the entropy that a "
        "colleague's says for the same weights. At the end the two agree.",
        first_look="tokens of a response beside its text",
        shows="tokens in the batch that were never sampled",
        probe="trained_on_what_was_sampled",
        why="Decoding and encoding is no way back: the model wrote 1 and 2, the "
        "tokenizer makes it 12, and the loss trains a token that nobody chose.",
        thread="huggingface/trl #5224",
        edits=(
            (
                PAY,
                PAY + "        rows = [self.tokenizer.encode(f'{text}<end>') "
                "for text in texts]\n"
                '        responses = self.tokenizer.pad_rows(rows, "right")\n',
            ),
        ),
        knob="tokenizer: without merged tokens nothing is wrong",
    ),
    Defect(
        cause="end token masked as if it were padding",
        complaint="The mean length in my log is eight tenths of a token below a "
        "colleague's, for the same samples.",
        first_look="last token that the mask keeps",
        shows="a mean length that is one token short",
        probe="mask_keeps_the_response",
        why="Padding is the end token, and the mask drops whatever equals padding: the "
        "one token that stops is never trained.",
        thread="huggingface/trl #6357",
        edits=(
            (
                "        is_eos = (responses == self.tokenizer.eos).long()\n"
                "        return is_eos.cumsum(dim=1) - is_eos == 0\n",
                "        return responses != self.tokenizer.eos\n",
            ),
            (
                "token[finished] = self.tokenizer.pad",
                "token[finished] = self.tokenizer.eos",
            ),
        ),
    ),
    Defect(
        cause="padding counted as response",
        complaint="My mean length is exactly max_new_tokens in every step, although "
        "the samples are short; the KL climbs and climbs.",
        first_look="mean length in the log beside the samples",
        shows="a mean length that never moves from max_new_tokens",
        probe="mask_keeps_the_response",
        why="The mask reaches to a second end token, which never comes, so the padding "
        "behind the first is trained and counted.",
        thread="bingreeky/MemGen #33",
        edits=(
            (
                "return is_eos.cumsum(dim=1) - is_eos == 0",
                "return is_eos.cumsum(dim=1) <= 1",
            ),
        ),
    ),
    Defect(
        cause="scores of the next token",
        complaint="The reward falls, and my log says about 15 nats a token of entropy "
        "from the first rollout on.",
        first_look="entropy in the first row of the log: is it below log(vocabulary)?",
        shows="a surprise of many nats a token at the model's own samples",
        probe="own_words_look_likely",
        why="The logits at a token forecast the one after it; read at the token "
        "itself, they score a neighbour.",
        thread="AI-Hypercomputer/maxtext #2103",
        edits=(("logits[:, :-1]", "logits[:, 1:]"),),
    ),
    Defect(
        cause="mask shifted by one token",
        complaint="It learns, but the entropy in my log is over three times a "
        "colleague's, and does not come down.",
        first_look="first and last token that the mask keeps",
        shows="a mask that leaves out the first token and keeps one behind the last",
        probe="mask_keeps_the_response",
        why="Scores belong to the second token onwards, so their mask starts there "
        "too; cut at the other end, it is one off.",
        thread="Goekdeniz-Guelmez/mlx-lm-lora #80",
        edits=(("kept], dim=1)[:, 1:]", "kept], dim=1)[:, :-1]"),),
    ),
    Defect(
        cause="prompt trained along with the response",
        complaint="My log says a mean length of 16 tokens in the first rollouts, "
        "where I allow 14, and an entropy of 3 nats a token.",
        first_look="mean length in the log beside the samples",
        shows="a mean length that holds the prompt too",
        probe="mask_keeps_the_response",
        why="The mask keeps whatever is no padding, the user's words too: they are "
        "pushed up and down by the reward of an answer.",
        thread="NVIDIA-NeMo/RL #2176",
        edits=(
            (
                "torch.cat([torch.zeros_like(attention), kept], dim=1)[:, 1:]",
                "torch.cat([attention, kept], dim=1)[:, 1:]",
            ),
        ),
    ),
    Defect(
        cause="rare tokens never sampled, yet scored",
        complaint="At a temperature of 1.5 my entropy is below a colleague's from the "
        "first rollout on, and my reward soon above hers.",
        first_look="the rarest token among many samples of one prompt",
        shows="samples that are more likely than samples of the scored policy can be",
        probe="surprise_equals_entropy",
        why="Sampled from the three best tokens, scored over the whole vocabulary: two "
        "different policies.",
        thread="huggingface/trl #6789",
        edits=(
            (
                "            probs = (logits[:, -1] / self.settings.temperature)"
                ".softmax(-1)\n",
                "            scores = logits[:, -1] / self.settings.temperature\n"
                "            best = scores.topk(3)\n"
                "            probs = torch.zeros_like(scores)\n"
                "            probs.scatter_(1, best.indices, best.values.softmax(1))\n",
            ),
        ),
        settings={"temperature": 1.5},
        knob="temperature: a sure policy rarely leaves its three best tokens",
    ),
    Defect(
        cause="old scores in low precision",
        complaint="As a test I ran one rollout with a learning rate of 0. The ratios "
        "in the log still reach from 0.9 to 1.08.",
        first_look="ratio range of the first inner step",
        shows="ratios up to a tenth off one before anything was learned",
        probe="ratios_start_at_one",
        why="The sampler computes in bfloat16, the trainer in float32; its scores, "
        "taken as old, make a ratio out of rounding.",
        thread="huggingface/trl #6789 (a comment with figures)",
        edits=(
            (
                "        batch.old_log_probs = self.score(batch)\n",
                '        with torch.autocast("cpu", dtype=torch.bfloat16):\n'
                "            batch.old_log_probs = self.score(batch)\n",
            ),
        ),
        knob="epsilon: a narrow clip range takes rounding for a change of policy",
    ),
]
