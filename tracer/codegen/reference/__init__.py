"""Loop IR interpreted in Python, slowly and with every check."""
