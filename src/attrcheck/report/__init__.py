"""Reports: what people read; one renderer a file."""
