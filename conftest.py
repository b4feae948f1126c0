"""What every test and every notebook's kernel runs under."""

from hypothesis import settings
from nbval.kernel import RunningKernel

from grpo_course.workshop import kernels

kernels.use()  # kernels that nbval starts inherit these variables

# The same examples on every run, and no test that fails because a machine is slow.
settings.register_profile("course", deadline=None, derandomize=True)
settings.load_profile("course")


def execute_with_history(self, cell_input, allow_stdin=None):
    """Run a cell as Jupyter does.

    nbval 0.11 keeps no history; without it IPython does not see that a cell ends
    with `;`, and shows what Jupyter would not.
    """
    return self.kc.execute(cell_input, allow_stdin=allow_stdin, stop_on_error=False)


RunningKernel.execute_cell_input = execute_with_history
