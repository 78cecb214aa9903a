internal import Glibc
internal import SystemPackage

package struct CheckedJob: Sendable {
  package let text: [UInt8]
  package let name: JobName
  /// Where its payload goes, if that comes from the URL: another job of the list may want the same. Before it is its
  /// `root:`, if it has one, in a line of its own. nil where the list names the output.
  package let wanted: String?
  /// Where it begins in the list, from 1.
  package let line: Int

  package init(text: [UInt8], name: JobName, wanted: String?, line: Int) {
    (self.text, self.name, self.wanted, self.line) = (text, name, wanted, line)
  }

  package var request: JobRequest { text.withUnsafeBytes { JobText($0) }.request }
}

/// Jobs that are to be dropped when all of them are known: a list of any length is refused or taken as a whole. They
/// are in a file of the spool that has no name, and goes with the process.
package final class CheckedJobs {
  private static let bufferSize = 256 << 10

  private let file: OwnedFile
  private var buffer: [UInt8] = []
  private var written: Int64 = 0
  /// What was read, up to `offset`; `position` is where the next job begins in it.
  private var block: [UInt8] = []
  private var position = 0
  private var offset: Int64 = 0
  package private(set) var count = 0

  package init(_ spool: Spool) throws(SpoolError) {
    let path = spool.temporary(FileName(".list"))
    file = try spool.system.createNew(spool.root, path)
    try spool.system.unlink(spool.root, path)
    buffer.reserveCapacity(Self.bufferSize)
  }

  package func append(_ job: CheckedJob) throws(SpoolError) {
    let wanted = job.wanted.map { Array($0.utf8) } ?? []
    let head = RecordHead(
      name: UInt32(job.name.fileName.bytes.count), text: UInt32(job.text.count), wanted: UInt32(wanted.count),
      line: Int64(job.line))
    withUnsafeBytes(of: head) { buffer.append(contentsOf: $0) }
    buffer += job.name.fileName.bytes
    buffer += job.text
    buffer += wanted
    count += 1
    if buffer.count >= Self.bufferSize { try write() }
  }

  private func write() throws(SpoolError) {
    try file.write(buffer, at: written)
    written += Int64(buffer.count)
    buffer.removeAll(keepingCapacity: true)
  }

  /// To be called when all are appended: ``next()`` gives the first one again.
  package func rewind() throws(SpoolError) {
    try write()
    (block, position, offset) = ([], 0, 0)
  }

  package func next() throws(SpoolError) -> CheckedJob? {
    let size = MemoryLayout<RecordHead>.size
    guard try fill(size) else { return nil }
    let head = block.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: position, as: RecordHead.self) }
    guard try fill(size + head.length) else { return nil }
    let name = position + size
    let text = name + Int(head.name)
    let wanted = text + Int(head.text)
    position = wanted + Int(head.wanted)
    return CheckedJob(
      text: Array(block[text..<wanted]), name: JobName(unchecked: FileName(Array(block[name..<text]))),
      wanted: wanted == position ? nil : String(decoding: block[wanted..<position], as: UTF8.self),
      line: Int(head.line))
  }

  /// Reads on until `count` bytes are there.
  /// - Returns: false where the file has ended.
  private func fill(_ count: Int) throws(SpoolError) -> Bool {
    while block.count - position < count {
      let wanted = Int(min(Int64(Self.bufferSize), written - offset))
      guard wanted > 0 else { return false }
      var more = [UInt8](repeating: 0, count: wanted)
      let got = try more.withUnsafeMutableBufferPointer { (bytes) throws(SpoolError) in
        try file.read(into: UnsafeMutableRawBufferPointer(bytes), at: offset)
      }
      guard got > 0 else { throw SpoolError(call: .read, path: file.path.display, errno: .ioError) }
      block = Array(block[position...]) + more[..<got]
      position = 0
      offset += Int64(got)
    }
    return true
  }
}

/// What is in the file before the bytes of a job: the lengths of its parts. An output is not empty, so 0 is for none.
private struct RecordHead {
  let name: UInt32
  let text: UInt32
  let wanted: UInt32
  let line: Int64

  var length: Int { Int(name) + Int(text) + Int(wanted) }
}
