"""Ops that users declare: a type rule with a formula or a reference."""
