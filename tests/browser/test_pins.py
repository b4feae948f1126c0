"""The pins of what is installed for the website and for these tests alone."""

from test_environment import (  # noqa: F401
    test_the_package_and_every_pin_admit_every_patch_of_the_tested_pythons,
)
