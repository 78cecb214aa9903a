internal import Glibc
internal import SystemPackage

/// The line by which a dropper says that it has written all of a job.
///
/// Where nobody can see for sure who still writes a file (``FileSystemKind/leases``), a job that ends in it need not
/// settle, and needs no copy. To readers it is a comment.
extension Spool {
  private static let completeLine = Array("# complete\n".utf8)

  /// A job's text as this program drops it: with the line where that makes a difference.
  func finished(_ text: [UInt8]) -> [UInt8] {
    if kind.leases == .both || text.last != 0x0A || Self.saysComplete(text) { return text }
    return text + Self.completeLine
  }

  /// Has a job that a person is about to put back say that it is complete, where that makes a difference, so that it
  /// need not settle. A file that this user may not rewrite, or that is no job's, is left as it is.
  /// - Throws: ``SpoolError``, ENOENT when it has moved.
  func sayComplete(_ place: JobPlace) throws(SpoolError) {
    guard kind.leases != .both, JobName(place.name) != nil,
      let status = try status(place.directory, place.name), status.isRegular,
      status.links == 1, status.size <= Self.maximumJobFile
    else { return }
    do throws(SpoolError) {
      if try saysComplete(openText(place.path)) { return }
      try replaceText(of: place, modified: status.modified) { finished($0) }
    } catch  where error.isUnreadable || error.errno == .notPermitted || error.isLackOfSpace {
    }
  }

  package static func saysComplete(_ text: [UInt8]) -> Bool { text.ends(with: [0x0A] + completeLine) }

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

extension [UInt8] {
  fileprivate func ends(with other: [UInt8]) -> Bool { suffix(other.count).elementsEqual(other) }
}
