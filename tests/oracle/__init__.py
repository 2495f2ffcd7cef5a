"""rdc beside rsync over random trees and options."""
