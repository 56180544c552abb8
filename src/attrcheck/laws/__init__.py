"""What holds for every protocol, and small worlds to try it in."""
