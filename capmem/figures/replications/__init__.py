"""A figure for each replicated study, in the manner of the original: what was published beside what is measured.

Each module draws the table of measurements of one study (columns part, line, x, trial, value).
"""
