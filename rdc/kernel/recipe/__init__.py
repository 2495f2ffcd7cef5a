"""Rows of a recipe: matches, unmatched runs and copy instructions.

rdc.kernel.recipe_rows exports them to rdc.plan and rdc.session.delta.
"""
