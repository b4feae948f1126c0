"""What every test and every notebook's kernel runs under."""

import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tools import run

run.use_variables()  # kernels that nbval starts inherit these variables

PICTURES = str(Path(__file__).parent / "tests" / "pictures.cfg")

# Ctrl-C as in a terminal, also where a shell starts the tests in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples on every run, and no test that fails because a machine is slow.
settings.register_profile("course", deadline=None, derandomize=True)
settings.load_profile("course")


def pytest_configure(config: pytest.Config) -> None:
    """Let nbval 0.11 run a cell as Jupyter does, where it runs at all.

    It keeps no history; without it IPython does not see that a cell ends with `;`,
    and shows what Jupyter would not. The frames of a film stand in HTML, which nbval
    compares as text; no other picture is compared, and so they are not.
    """
    if not config.getoption("nbval", default=False):
        return
    if not config.option.nbval_sanitize_with:
        config.option.nbval_sanitize_with = PICTURES
    from nbval.kernel import RunningKernel

    def execute(self, cell_input, allow_stdin=None):
        return self.kc.execute(cell_input, allow_stdin=allow_stdin, stop_on_error=False)

    RunningKernel.execute_cell_input = execute
    calculate_elsewhere()


def calculate_elsewhere() -> None:
    """Let some notebooks calculate as on another processor."""
    from nbval.plugin import IPyNbFile

    start_kernel = IPyNbFile.setup

    def setup(self):
        with pytest.MonkeyPatch.context() as patch:
            other = run.CPUS.get(run.ELSEWHERE.get(self.path.stem, ""), {})
            for name, value in other.items():
                patch.setenv(name, value)
            start_kernel(self)

    IPyNbFile.setup = setup


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say so, for who sees such a notebook fail."""
    if not config.getoption("nbval", default=False):
        return []
    return [f"as on another processor: {run.ELSEWHERE}"]
