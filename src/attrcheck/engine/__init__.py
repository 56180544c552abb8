"""Run cases and checks: load pairs, attribute, observe, reduce."""
