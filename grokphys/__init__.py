"""The application: the command line, the demonstration, and what reproduces the papers."""
