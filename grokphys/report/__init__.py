"""Reports: tables, figures and sentences as one self-contained page, and what each command has to say.

Here belongs how results are shown. What they are is computed by `analysis`.
"""
