"""What people look at: pictures of replay.

- demo, demo_figure: one scripted policy under three kernels, as a table and a figure
- network_figure: a network with V_sens and the seeds of its stimuli
- film: GIF and MP4 of an episode, two kernels side by side
- lab: a page on this machine that answers while constants are moved
"""
