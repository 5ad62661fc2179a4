"""How each language of the interface writes numbers (settings.FORMAT_MODULE_PATH)."""
