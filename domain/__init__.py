"""Decisions about lanes: pure functions of values. No disk, no git, no clock, no await.

Start with `events` (all that can happen), then read a chapter, for instance `removal`.
"""
