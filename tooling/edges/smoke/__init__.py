"""Runs the smoke stage's scenarios in fresh processes and watches them from outside. Judging is `tooling.smoke`'s."""
