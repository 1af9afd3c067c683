"""The paper's figures from our code, one file each, and a live run beside the model."""
