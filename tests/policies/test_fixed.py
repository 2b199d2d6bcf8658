from grv.policies import Fixed
from grv.testing.contracts import PolicyContract


class TestFixed(PolicyContract):
    policy = Fixed(6, 3)
