"""The paper's figures from our code, one file each."""
