internal import Glibc
internal import SystemPackage

/// Jobs that are to be dropped when all of them are known: a list of any length is refused or taken as a whole. They
/// are in a file of the spool that has no name, and goes with the process.
package final class CheckedJobs {
  private static let bufferSize = 256 << 10

  private let file: OwnedFile
  private var buffer: [UInt8] = []
  private var written: Int64 = 0
  /// The number of jobs.
  package private(set) var count = 0

  /// - Throws: ``SpoolError``.
  package init(_ spool: Spool) throws(SpoolError) {
    let path = spool.temporary(FileName(".list"))
    file = try spool.system.create(spool.root, path, O_RDWR | O_EXCL | O_NOFOLLOW)
    try spool.system.unlink(spool.root, path)
    buffer.reserveCapacity(Self.bufferSize)
  }

  /// - Throws: ``SpoolError``.
  package func append(_ text: String, as name: JobName) throws(SpoolError) {
    let lengths = [UInt32(name.fileName.bytes.count), UInt32(text.utf8.count)]
    for length in lengths { withUnsafeBytes(of: length) { buffer.append(contentsOf: $0) } }
    buffer += name.fileName.bytes
    buffer += text.utf8
    count += 1
    if buffer.count >= Self.bufferSize { try write() }
  }

  private func write() throws(SpoolError) {
    try file.write(buffer, at: written)
    written += Int64(buffer.count)
    buffer.removeAll(keepingCapacity: true)
  }

  /// Calls `body` with each job, in order.
  /// - Throws: ``SpoolError``, also what `body` throws.
  package func forEach(_ body: (_ text: [UInt8], _ name: JobName) throws(SpoolError) -> Void) throws(SpoolError) {
    try write()
    var rest: [UInt8] = []
    try file.readBlocks(0..<UInt64(written)) { (block, _) throws(SpoolError) in
      rest += block
      var position = 0
      while let (name, text) = Self.record(rest[position...]) {
        position = text.upperBound
        guard let job = JobName(FileName(Array(rest[name]))) else { continue }
        try body(Array(rest[text]), job)
      }
      rest.removeFirst(position)
    }
  }

  /// Where the name and the text of the first job are; nil where not all of it is there yet.
  private static func record(_ bytes: ArraySlice<UInt8>) -> (name: Range<Int>, text: Range<Int>)? {
    let head = 2 * MemoryLayout<UInt32>.size
    guard bytes.count >= head else { return nil }
    let (name, text) = bytes.withUnsafeBytes {
      (Int($0.loadUnaligned(as: UInt32.self)), Int($0.loadUnaligned(fromByteOffset: head / 2, as: UInt32.self)))
    }
    guard bytes.count >= head + name + text else { return nil }
    let start = bytes.startIndex + head
    return (start..<start + name, start + name..<start + name + text)
  }
}
