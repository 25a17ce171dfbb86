"""Tracing of Python to programs: traces, arrays, trees and source locations."""
