"""Rules of users, in a process that can be stopped."""
