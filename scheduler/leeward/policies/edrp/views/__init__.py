"""EDRP's words and pictures: explanations as text, page and drawing, trade-off curves."""
