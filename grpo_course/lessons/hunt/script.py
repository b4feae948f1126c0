"""GRPO for a small language model that sorts numbers, in one file."""

import random
import re
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from grpo_course.lessons.hunt.base import LARGEST, Tokenizer, load_model

MEASURES = ("loss", "kl", "entropy", "ratio", "clip_fraction")  # of each token
NOT_YET = torch.empty(0)


@dataclass
class Settings:
    seed: int = 0
    num_steps: int = 20  # rollouts
    num_prompts: int = 8
    num_responses: int = 8  # to each prompt
    num_inner_steps: int = 4  # optimizer steps on each rollout
    micro_batch_size: int = 32
    min_numbers: int = 2
    max_numbers: int = 4
    max_new_tokens: int = 14
    tool: bool = False  # answers the "=" of a response with the smallest number
    temperature: float = 0.8
    learning_rate: float = 0.005
    max_gradient_norm: float = 1.0
    beta: float = 0.04
    epsilon: float = 0.2


@dataclass
class Batch:
    """A rollout: each row is a prompt and one response to it, group after group."""

    tokens: Tensor  # int [row pos]
    attention: Tensor  # bool [row pos]
    mask: Tensor  # bool [row pos-1], as all that is of each token but the first
    rewards: Tensor  # [row]
    deltas: Tensor  # [row]
    problems: list[list[int]]
    texts: list[str]
    old_log_probs: Tensor = NOT_YET  # [row pos-1]
    ref_log_probs: Tensor = NOT_YET  # [row pos-1]

    def part(self, rows: slice) -> "Batch":
        return Batch(*[getattr(self, field.name)[rows] for field in fields(self)])


class Trainer:
    def __init__(self, **settings):
        self.settings = s = Settings(**settings)
        torch.manual_seed(s.seed)
        self.random = random.Random(s.seed)
        self.tokenizer = Tokenizer()
        self.model = load_model(s.seed)
        self.model.eval()
        weights = [w for w in self.model.parameters() if w.requires_grad]
        self.optimizer = AdamW(weights, lr=s.learning_rate, weight_decay=0.0)
        total = s.num_steps * s.num_inner_steps
        self.schedule = LambdaLR(self.optimizer, lambda step: max(0, 1 - step / total))
        self.log = []

    def draw_problems(self) -> list[list[int]]:
        low, high = self.settings.min_numbers, self.settings.max_numbers
        sizes = [
            self.random.randint(low, high) for _ in range(self.settings.num_prompts)
        ]
        return [self.random.sample(range(LARGEST + 1), size) for size in sizes]

    def encode(self, problems: list[list[int]]) -> tuple[Tensor, Tensor]:
        """Prompts, padded on the left. -> int and bool [row pos]"""
        tokenizer, texts = self.tokenizer, [" ".join(map(str, p)) for p in problems]
        rows = [tokenizer.encode(tokenizer.apply_chat_template(text)) for text in texts]
        prompts = tokenizer.pad_rows(rows, "left")
        return prompts, prompts != tokenizer.pad

    @torch.no_grad()
    def sample(self, prompts: Tensor, attention: Tensor) -> Tensor:
        """One response to each row. -> int [row pos]"""
        finished = torch.zeros(len(prompts), dtype=torch.bool)
        logits, state = self.model(prompts, attention)
        responses: list[Tensor] = []
        for place in range(self.settings.max_new_tokens):
            probs = (logits[:, -1] / self.settings.temperature).softmax(-1)
            token = torch.multinomial(probs, 1)
            if self.settings.tool and place in (1, 2, 3):
                asked = responses[0] == self.tokenizer.equals
                token = self.ask_tool(prompts)[:, [place - 1]].where(asked, token)
            token[finished] = self.tokenizer.pad
            responses.append(token)
            finished = finished | (token[:, 0] == self.tokenizer.eos)
            logits, state = self.model(token, state=state)
        return torch.cat(responses, dim=1)

    def ask_tool(self, prompts: Tensor) -> Tensor:
        """The smallest number as the tool writes it, such as " 07". -> int [row 3]"""
        problems = [map(int, self.tokenizer.decode(row).split()) for row in prompts]
        answers = [f" {min(numbers):02}" for numbers in problems]
        return torch.tensor([[*map(self.tokenizer.tokens.index, a)] for a in answers])

    def own_words(self, responses: Tensor) -> Tensor:
        """Which tokens the model wrote, and not the tool. int -> bool [row pos]"""
        own = torch.ones_like(responses, dtype=torch.bool)
        if self.settings.tool:
            own[:, 1:4] = responses[:, :1] != self.tokenizer.equals
        return own

    def response_mask(self, responses: Tensor) -> Tensor:
        """Which tokens a response consists of. int -> bool [row pos]"""
        is_eos = (responses == self.tokenizer.eos).long()
        return is_eos.cumsum(dim=1) - is_eos == 0

    def reward(self, numbers: list[int], text: str) -> float:
        """0.2 for the form, 0.2 for each number in its place."""
        found = re.fullmatch(r"= (\d+(?: \d+)*)", text)
        if not found:
            return 0.0
        answer = [int(number) for number in found[1].split()]
        if len(answer) != len(numbers):
            return 0.2
        right = sum(a == b for a, b in zip(answer, sorted(numbers), strict=True))
        return 0.2 + 0.2 * right

    def compute_deltas(self, rewards: Tensor) -> Tensor:
        """Rewards in units of the spread of their group. [row] -> [row]"""
        groups = rewards.view(-1, self.settings.num_responses)
        centered = groups - groups.mean(dim=1, keepdim=True)
        return (centered / (groups.std(dim=1, keepdim=True) + 1e-4)).flatten()

    def pay(self, problems: list[list[int]], responses: Tensor) -> tuple[list, Tensor]:
        """-> the text of each response, and its reward [row]"""
        texts = [self.tokenizer.decode(row) for row in responses]
        ended = (responses == self.tokenizer.eos).any(dim=1)
        rewards = [self.reward(*each) for each in zip(problems, texts, strict=True)]
        return texts, torch.tensor(rewards) * ended

    @torch.no_grad()
    def collect(self) -> Batch:
        """Sample a group of responses to each prompt, and score them."""
        drawn = self.draw_problems()
        problems = [p for p in drawn for _ in range(self.settings.num_responses)]
        prompts, attention = self.encode(problems)
        responses = self.sample(prompts, attention)
        texts, rewards = self.pay(problems, responses)
        deltas = self.compute_deltas(rewards)
        kept = self.response_mask(responses)
        tokens = torch.cat([prompts, responses], dim=1)
        mask = torch.cat([torch.zeros_like(attention), kept], dim=1)[:, 1:]
        mask[:, -responses.shape[1] :] &= self.own_words(responses)
        attention = torch.cat([attention, kept], dim=1)
        batch = Batch(tokens, attention, mask, rewards, deltas, problems, texts)
        batch.old_log_probs = self.score(batch)
        with self.model.disable_adapter():
            batch.ref_log_probs = self.score(batch)
        return batch

    def score(self, batch: Batch) -> Tensor:
        """The log-probability of each token after the first. -> [row pos-1]"""
        logits, _ = self.model(batch.tokens, batch.attention)
        log_probs = (logits[:, :-1] / self.settings.temperature).log_softmax(-1)
        return log_probs.gather(-1, batch.tokens[:, 1:, None]).squeeze(-1)

    def token_losses(self, log_probs: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """-> losses [row pos-1], and what to log of each token [what row pos-1]"""
        s, deltas = self.settings, batch.deltas[:, None]
        ratio = (log_probs - batch.old_log_probs).exp()
        clipped = ratio.clamp(1 - s.epsilon, 1 + s.epsilon)
        gain = torch.minimum(ratio * deltas, clipped * deltas)
        log_ratio = batch.ref_log_probs - log_probs
        kl = log_ratio.exp() - log_ratio - 1
        losses = s.beta * kl - gain
        is_clipped = (gain < ratio * deltas).float()
        stats = torch.stack([losses, kl, -log_probs, ratio, is_clipped])
        return losses, stats.detach()

    def update(self, batch: Batch) -> tuple[Tensor, float]:
        """One optimizer step. -> what to log [what token], and the gradient's norm"""
        size, num_tokens = self.settings.micro_batch_size, batch.mask.sum()
        seen = []
        for start in range(0, len(batch.tokens), size):
            part = batch.part(slice(start, start + size))
            losses, stats = self.token_losses(self.score(part), part)
            loss = losses[part.mask].sum() / num_tokens
            loss.backward()
            seen.append(stats[:, part.mask])
        norm = clip_grad_norm_(self.model.parameters(), self.settings.max_gradient_norm)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad()
        return torch.cat(seen, dim=1), norm.item()

    def step(self) -> None:
        """A rollout, and the optimizer steps on it."""
        batch = self.collect()
        for _ in range(self.settings.num_inner_steps):
            stats, norm = self.update(batch)
        row = dict(zip(MEASURES, stats.mean(dim=1).tolist(), strict=True))
        row["ratio_low"], row["ratio_high"] = map(float, stats[3].aminmax())
        row["reward"], row["gradient_norm"] = batch.rewards.mean().item(), norm
        row["length"] = batch.mask.sum(dim=1).float().mean().item()
        row["learning_rate"] = self.optimizer.param_groups[0]["lr"]
        self.log.append(row)

    def train(self) -> list[dict]:
        for _ in range(self.settings.num_steps):
            self.step()
        return self.log
