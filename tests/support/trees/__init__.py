"""Helpers that make trees and file contents."""
