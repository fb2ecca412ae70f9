"""Systems to simulate: one frozen dataclass a file."""
