/// What is wrong with a job or with `defaults`, and where.
package struct Defect: Error, Sendable, Equatable, CustomStringConvertible {
  /// Counted from 1; nil when it concerns the whole file.
  package let line: Int?
  /// Says what to do about it; free of control bytes and of header values.
  package let reason: String

  /// - Parameter reason: free of control bytes and of header values.
  package init(line: Int?, reason: String) {
    self.line = line
    self.reason = reason
  }

  package var description: String { line.map { "line \($0): \(reason)" } ?? reason }
}

/// Why a key's value cannot be read. The text follows the key's name.
struct InvalidValue: Error {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}
