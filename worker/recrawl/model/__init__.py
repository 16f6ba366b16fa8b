"""Pure numerics: numpy in, numpy out. No I/O, no clock, nothing of the rest of recrawl."""
