"""Tests of rdc.signature: signature trees and their format."""
