"""The paper's figures beside ours."""
