"""The toolkit live in a browser: `grokphys explore`."""
