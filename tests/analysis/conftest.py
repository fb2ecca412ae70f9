import pytest

import physics


@pytest.fixture(scope="session")
def particles():
    return physics.simulate(physics.ParticleSystem(tokens=7), runs=6, steps=40)
