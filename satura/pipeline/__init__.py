"""From a model to a program ready to run: the stages, what they make, and what is remembered."""
