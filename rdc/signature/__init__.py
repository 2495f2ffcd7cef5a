"""signature"""
