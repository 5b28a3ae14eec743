"""Which of the paper's numbers hold together: three readings of the paper, side by side."""
