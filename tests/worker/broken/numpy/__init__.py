raise ImportError("numpy cannot be loaded")
