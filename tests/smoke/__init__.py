"""Tests of the smoke stage."""
