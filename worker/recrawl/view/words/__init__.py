"""How what is known is said: numbers, times, sentences. Pure."""
