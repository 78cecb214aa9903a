/// The line by which a dropper says that it has written all of a job.
///
/// Where nobody can see who still writes a file (``FileSystemKind/leaseShowsAllWriters``), a job that ends in it need
/// not settle. To readers it is a comment.
extension Spool {
  private static let completeLine = Array("# complete\n".utf8)

  /// A job's text as this program drops it: with the line where that makes a difference.
  func finished(_ text: [UInt8]) -> [UInt8] {
    kind.leaseShowsAllWriters || text.last != 0x0A ? text : text + Self.completeLine
  }

  /// Whether the file ends in the line.
  func saysComplete(_ file: borrowing OwnedFile) throws(SpoolError) -> Bool {
    let line = [0x0A] + Self.completeLine
    let status = try file.status()
    guard status.isRegular, status.size >= line.count else { return false }
    var tail = [UInt8](repeating: 0, count: line.count)
    let count = try tail.withUnsafeMutableBufferPointer { (buffer) throws(SpoolError) in
      try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: status.size - Int64(line.count))
    }
    return count == line.count && tail == line
  }
}
