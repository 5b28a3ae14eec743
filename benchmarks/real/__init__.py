"""The gate on real data: trust between traders (Bitcoin OTC), likes and hates (KuaiRand).

Neither is an exposure log of a platform. What they can say: of several ways to turn past harm into
down-weights, which holds back more later harm for the good that it costs.
"""
