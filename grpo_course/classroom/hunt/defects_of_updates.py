"""Defects in what becomes of the losses: sums, gradients, steps."""

from grpo_course.classroom.hunt.defect import Defect

MEAN = "            loss = losses[part.mask].sum() / num_tokens\n"

UPDATES = [
    Defect(
        cause="dropout on in the update",
        complaint="My ratios go from under 0.01 to over 10, and the KL is far above a "
        "colleague's from the first step on.",
        first_look="ratio range of the first inner step, twice",
        shows="ratios far from one before anything was learned, others each time",
        probe="ratios_start_at_one",
        why="Old scores without dropout, new ones with it: the ratio compares two "
        "networks, not two moments of one.",
        thread="huggingface/trl #3234",
        edits=(
            (
                "        size, num_tokens = self.settings.micro_batch_size, "
                "batch.mask.sum()\n",
                "        self.model.train()\n"
                "        size, num_tokens = self.settings.micro_batch_size, "
                "batch.mask.sum()\n",
            ),
            (
                "        drawn = self.draw_problems()\n",
                "        self.model.eval()\n        drawn = self.draw_problems()\n",
            ),
        ),
    ),
    Defect(
        cause="each part divided by its own tokens",
        complaint="I moved to a machine with less memory, with micro-batches of 16 "
        "rows. From the same seed, the gradient norm of the first rollout "
        "is a few per cent off.",
        first_look="gradient norm of one batch, in one part and in many",
        shows="a gradient that depends on the size of the micro-batches",
        probe="parts_make_no_difference",
        why="A mean of means: a token in a part with few tokens weighs more than one "
        "in a part with many.",
        thread="huggingface/transformers #24725",
        edits=(
            (
                MEAN,
                "            loss = losses[part.mask].mean() * size / "
                "len(batch.tokens)\n",
            ),
        ),
        settings={"micro_batch_size": 16},
        knob="micro-batches: in one part nothing is wrong",
    ),
    Defect(
        cause="schedule too short for the inner steps",
        complaint="Learning stops dead after a quarter of the run; the ratio is 1 from "
        "then on.",
        first_look="learning rate in the log",
        shows="a learning rate of 0 long before the end",
        probe="rate_lasts_to_the_end",
        why="The schedule counts rollouts and is advanced by every optimizer step, so "
        "it arrives at zero too early by a factor of the inner steps.",
        thread="NovaSky-AI/SkyRL #873",
        edits=(("total = s.num_steps * s.num_inner_steps", "total = s.num_steps"),),
        knob="inner steps: with one nothing is wrong",
    ),
    Defect(
        cause="gradient cleared for each part",
        complaint="I moved to a machine with less memory, with micro-batches of 16 "
        "rows. The gradient norm is a third of what it was, and the reward "
        "lags behind.",
        first_look="gradient norm of one batch, in one part and in many",
        shows="a gradient that comes from the last micro-batch alone",
        probe="parts_make_no_difference",
        why="The gradient is cleared before each part, so only the last one reaches "
        "the optimizer.",
        thread="pytorch/torchtitan #3575",
        edits=(
            (
                "            loss.backward()\n",
                "            self.optimizer.zero_grad()\n            loss.backward()\n",
            ),
            (
                "        self.schedule.step()\n        self.optimizer.zero_grad()\n",
                "        self.schedule.step()\n",
            ),
        ),
        settings={"micro_batch_size": 16},
        knob="micro-batches: in one part nothing is wrong",
    ),
    Defect(
        cause="loss negated twice",
        complaint="The reward drops to zero within a few steps, in every seed, and "
        "the responses run into the length limit.",
        first_look="reward of the first five steps, over seeds",
        shows="a reward that falls in every seed, and still a ratio above 1 for a "
        "token that got likelier",
        probe="better_responses_gain",
        why="The token loss is negative gain already; negated once more, the optimizer "
        "climbs where it should descend.",
        thread="fla-org/flash-linear-attention #1073",
        edits=((MEAN, "            loss = -losses[part.mask].sum() / num_tokens\n"),),
    ),
]
