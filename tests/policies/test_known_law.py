from grv.policies import KnownLaw
from grv.testing.contracts import PolicyContract


class TestKnownLaw(PolicyContract):
    policy = KnownLaw((0.0, 1.0), (0.1, 0.5))
