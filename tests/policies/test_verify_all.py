from grv.policies import VerifyAll
from grv.testing.contracts import PolicyContract


class TestVerifyAll(PolicyContract):
    policy = VerifyAll()
