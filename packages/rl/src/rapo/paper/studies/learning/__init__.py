"""What RAPO's policy adds to its kernel: constants, greedy and a policy without sight beside it.

The deformed kernel suppresses replay whatever is played in front of it. Learning has to show
against every constant action, and against drawing one of them for each episode.
"""
