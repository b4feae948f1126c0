"""What all tests share."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Small matrix products are slower on two threads than on one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
