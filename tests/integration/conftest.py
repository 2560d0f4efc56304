import pytest


@pytest.fixture
def place():
    return None
