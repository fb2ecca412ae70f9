"""What the tests of trajectory files share."""

import pytest
from trajectories import made


@pytest.fixture
def path(tmp_path):
    made().save(tmp_path / "t.h5")
    return tmp_path / "t.h5"
