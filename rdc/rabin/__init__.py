"""rabin"""
