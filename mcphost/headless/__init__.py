"""The commands without a screen: the answer on stdout, everything else on stderr, the verdict as exit code."""
