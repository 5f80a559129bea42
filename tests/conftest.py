"""What all tests share."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.fakes.promises")

# A busy machine is no failure.
settings.register_profile("lakegate", deadline=None)
settings.load_profile("lakegate")
