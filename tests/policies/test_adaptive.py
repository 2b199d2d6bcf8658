from grv.policies import Adaptive
from grv.testing.contracts import PolicyContract


class TestAdaptive(PolicyContract):
    policy = Adaptive()
