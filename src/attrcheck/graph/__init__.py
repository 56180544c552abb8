"""Networks taken apart: traced, rewritten, and a fast copy that only predicts."""
