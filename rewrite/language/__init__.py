"""The language of rules: what a rule file may say, and the mistakes that are found in it."""
