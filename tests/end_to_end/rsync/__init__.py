"""Random trees and options, compared with what rsync does."""
