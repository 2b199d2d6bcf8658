from grv.policies import Threshold
from grv.testing.contracts import PolicyContract


class TestThreshold(PolicyContract):
    policy = Threshold(1)
