"""Foreign libraries, each behind one module: foreign code stays at the edge."""
