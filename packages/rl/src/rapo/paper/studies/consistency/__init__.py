"""Which of the paper's numbers can hold together: `rapo reproduce consistency`."""
