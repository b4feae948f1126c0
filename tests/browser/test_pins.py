"""The pins of what is installed for the website and for these tests alone."""

import test_environment as of_the_frame

test_every_pin = of_the_frame.test_every_pin_admits_every_patch_of_every_python
