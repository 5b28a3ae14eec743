"""The paper's dual rule taken literally: no budget, duals rise from 0 with every cost."""
