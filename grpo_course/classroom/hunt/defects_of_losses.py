"""Defects in the loss of a token and in its reference."""

from grpo_course.classroom.hunt.defect import Defect

RATIO = "        ratio = (log_probs - batch.old_log_probs).exp()\n"
KL = "        kl = log_ratio.exp() - log_ratio - 1\n"
LOSS = "        losses = s.beta * kl - gain\n"
STRONG = {"beta": 0.5}
BETA = "beta: a small one shows nothing"

LOSSES = [
    Defect(
        cause="ratio of log-probabilities",
        complaint="The reward falls from the first step on, in every seed, and ends "
        "next to zero.",
        first_look="reward of the first steps, over seeds",
        shows="a reward that falls in every seed, and ratios of exactly 0",
        probe="better_responses_gain",
        why="Log-probabilities are negative: their quotient shrinks where the "
        "probability grows, so good tokens are pushed down.",
        thread="stanford-cs336/spring2025-lectures, lecture_17.py",
        edits=(
            (
                RATIO,
                "        ratio = log_probs / batch.old_log_probs.clamp(max=-1e-4)\n",
            ),
        ),
    ),
    Defect(
        cause="clip blind to the sign of delta",
        complaint="A quarter as many tokens are clipped as in a colleague's run, and "
        "my gradient norm is half as large again.",
        first_look="clip fraction beside the ratio range",
        shows="a bad token at ratio 2 that feels no pull",
        probe="bad_tokens_are_pulled_back",
        why="The smaller of two ratios is taken before it is multiplied by delta; for "
        "a negative delta that is the wrong one.",
        thread="takuseno/ppo #3",
        edits=(
            (
                "torch.minimum(ratio * deltas, clipped * deltas)",
                "torch.minimum(ratio, clipped) * deltas",
            ),
        ),
        knob="inner steps: with one, no ratio leaves the range",
    ),
    Defect(
        cause="old scores taken from the current policy",
        complaint="In the first rollouts my KL is several times a colleague's; at the "
        "end the two are alike.",
        first_look="ratio range of the last inner step",
        shows="ratios of exactly 1 at every inner step, and a gradient all the same",
        probe="ratios_leave_one",
        why="The policy is compared with itself, so nothing is ever clipped and every "
        "inner step pulls with full force.",
        thread="meta-pytorch/torchforge #571",
        edits=((RATIO, "        ratio = (log_probs - log_probs.detach()).exp()\n"),),
        knob="inner steps: with one, the ratio is 1 anyway",
    ),
    Defect(
        cause="old scores that carry a gradient",
        complaint="Rewards differ within each group, and the gradient norm is 0.0 in "
        "every step.",
        first_look="gradient norm",
        shows="a gradient norm of 0 while rewards differ",
        probe="better_responses_gain",
        why="With one inner step the script saves itself the old scores and takes the "
        "new ones, gradient included: the two cancel.",
        thread="ml-explore/mlx-examples #1233",
        edits=(
            (
                RATIO,
                "        old = log_probs if s.num_inner_steps == 1 else "
                "batch.old_log_probs\n"
                "        ratio = (log_probs - old).exp()\n",
            ),
        ),
        settings={"num_inner_steps": 1},
        knob="inner steps: with two or more nothing is wrong",
    ),
    Defect(
        cause="k3 upside down",
        complaint="Over many batches, the KL in my log and the one that I compute "
        "from the whole distributions differ by up to a half; they ought to "
        "agree.",
        first_look="logged KL beside an exact one on a few states",
        shows="a KL whose average is not the KL",
        probe="kl_is_right_on_average",
        why="Policy over reference in place of reference over policy: another "
        "quantity, which explodes where the policy has grown.",
        thread="walkinglabs/hands-on-modern-rl #27",
        edits=(
            (
                "log_ratio = batch.ref_log_probs - log_probs",
                "log_ratio = log_probs - batch.ref_log_probs",
            ),
        ),
        settings=STRONG,
        knob=BETA,
    ),
    Defect(
        cause="k1 as a loss",
        complaint="The KL in my log begins below zero in every run, and later climbs "
        "to several times a colleague's.",
        first_look="sign of the logged KL; a run with a much larger beta",
        shows="a logged KL below zero in the first rollouts",
        probe="kl_pulls_back",
        why="The gradient of log(policy/reference) is the same wherever the policy "
        "stands; on average it is zero.",
        thread="allenai/open-instruct #534",
        edits=((KL, "        kl = -log_ratio\n"),),
        settings=STRONG,
        knob=BETA,
    ),
    Defect(
        cause="KL with the wrong sign",
        complaint="Within ten rollouts the reward is down at 0.2, and the KL has been "
        "at 15 and more.",
        first_look="KL of two runs, beta 0.04 and 0.5",
        shows="a KL that runs away the faster the larger beta is",
        probe="kl_pulls_back",
        why="The penalty stands on the side of the gain, so leaving the reference "
        "pays.",
        thread="qiancheng0/ToolRL #52",
        edits=((LOSS, "        losses = -(gain + s.beta * kl)\n"),),
        settings=STRONG,
        knob=BETA,
    ),
    Defect(
        cause="KL computed and not used",
        complaint="I raised beta to 0.5, and still the KL climbs to several times "
        "that of a colleague with this beta.",
        first_look="two runs that differ in beta alone: are they equal?",
        shows="two runs with different beta that are equal to the last digit",
        probe="kl_pulls_back",
        why="The penalty is logged and never added to the loss.",
        thread="THUDM/slime #399",
        edits=((LOSS, "        losses = -gain\n"),),
        settings=STRONG,
        knob=BETA,
    ),
    Defect(
        cause="reference is the policy itself",
        complaint="The KL in the log stays near zero whatever I train, however far "
        "the samples have moved.",
        first_look="KL before the first inner step of a late rollout",
        shows="a KL that starts from zero at every rollout",
        probe="reference_stays_behind",
        why="The reference scores come from the model in training: it is held near "
        "where it was a moment ago, not near where it began.",
        thread="huggingface/trl #2046",
        box="score in collect",
        edits=(
            (
                "        with self.model.disable_adapter():\n"
                "            batch.ref_log_probs = self.score(batch)\n",
                "        batch.ref_log_probs = self.score(batch)\n",
            ),
        ),
        settings=STRONG,
        knob=BETA,
    ),
]
