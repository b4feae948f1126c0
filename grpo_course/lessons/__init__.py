"""What belongs to one notebook each: its exercises, its pictures, and the bug hunt."""
