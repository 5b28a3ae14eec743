"""What people look at: pictures of replay.

- film: GIF and MP4 of an episode, two kernels side by side
- lab: a page on this machine that answers while constants are moved
"""
