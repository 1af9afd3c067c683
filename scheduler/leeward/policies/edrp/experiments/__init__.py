"""The papers' experiments run with our code: problems built here, figures set beside those that were printed."""
