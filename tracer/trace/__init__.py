"""From Python to programs: the one tracer, arrays, trees and source locations."""
