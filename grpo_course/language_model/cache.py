"""A KV cache that copies nothing when a token is added."""

from typing import Any

from torch import Tensor
from transformers import Cache, PreTrainedModel
from transformers.cache_utils import DynamicLayer


class RoomyLayer(DynamicLayer):
    """Keys and values of one attention layer, with room for all tokens to come.

    The layer of transformers makes longer tensors for every token, and so copies all
    that was read before. Here a token is written behind the others; no gradient passes
    through that, so it is for sampling only.
    """

    def __init__(self, room: int):
        super().__init__()
        self.room = room  # tokens, those of the prompt included

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write [rows heads pos dim] behind what is there; returns all of it."""
        new = key_states, value_states
        if not self.is_initialized:
            self.lazy_initialization(*new)
            self.memory = [empty_room(states, self.room) for states in new]
        begin = self.get_seq_length()
        end = begin + key_states.shape[-2]
        for memory, states in zip(self.memory, new, strict=True):
            memory[:, :, begin:end] = states
        return self.show(end)

    def show(self, pos: int) -> tuple[Tensor, Tensor]:
        """So many tokens are there."""
        self.keys, self.values = (memory[:, :, :pos] for memory in self.memory)
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep some of the rows, or repeat them; the room stays."""
        self.memory = [memory[indices] for memory in self.memory]
        self.show(self.get_seq_length())


def empty_room(states: Tensor, room: int) -> Tensor:
    """[rows heads pos dim] -> [rows heads room dim]"""
    rows, heads, _, dim = states.shape
    return states.new_empty(rows, heads, room, dim)


def roomy_cache(model: PreTrainedModel, room: int) -> Cache:
    """An empty cache for so many tokens a row."""
    return Cache([RoomyLayer(room) for _ in range(model.config.num_hidden_layers)])
