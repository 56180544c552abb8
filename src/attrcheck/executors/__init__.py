"""Where shards are computed, if not in the items themselves: planning, computing, gathering."""
