internal import Glibc
internal import SystemPackage

/// A job of a list that was checked.
package struct CheckedJob: Sendable {
  /// What is written to its file.
  package let text: [UInt8]
  /// The name that it should get.
  package let name: JobName
  /// Where its payload goes, if that comes from the URL: another job of the list may want the same. nil where the list
  /// names the output.
  package let wanted: String?
  /// Where it begins in the list, from 1.
  package let line: Int

  /// A job with these parts.
  package init(text: [UInt8], name: JobName, wanted: String?, line: Int) {
    self.text = text
    self.name = name
    self.wanted = wanted
    self.line = line
  }

  /// What the text asks for.
  package var request: JobRequest { text.withUnsafeBytes { JobText($0) }.request }
}

/// Jobs that are to be dropped when all of them are known: a list of any length is refused or taken as a whole. They
/// are in a file of the spool that has no name, and goes with the process.
package final class CheckedJobs {
  fileprivate static let bufferSize = 256 << 10

  fileprivate let file: OwnedFile
  private var buffer: [UInt8] = []
  fileprivate private(set) var written: Int64 = 0
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

  fileprivate func write() throws(SpoolError) {
    try file.write(buffer, at: written)
    written += Int64(buffer.count)
    buffer.removeAll(keepingCapacity: true)
  }

  /// Reads them in their order, when all are appended.
  /// - Throws: ``SpoolError``.
  package func reader() throws(SpoolError) -> CheckedJobReader { try CheckedJobReader(self) }
}

/// What is in the file before the bytes of a job: the lengths of its parts. An output is not empty, so 0 is for none.
private struct RecordHead {
  let name: UInt32
  let text: UInt32
  let wanted: UInt32
  let line: Int64

  var length: Int { Int(name) + Int(text) + Int(wanted) }
}

/// Reads ``CheckedJobs``.
package struct CheckedJobReader {
  private let jobs: CheckedJobs
  private var buffer: [UInt8] = []
  private var position = 0
  private var offset: Int64 = 0

  fileprivate init(_ jobs: CheckedJobs) throws(SpoolError) {
    self.jobs = jobs
    try jobs.write()
  }

  /// nil at the end.
  /// - Throws: ``SpoolError``.
  package mutating func next() throws(SpoolError) -> CheckedJob? {
    let size = MemoryLayout<RecordHead>.size
    guard try fill(size) else { return nil }
    let head = buffer.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: position, as: RecordHead.self) }
    guard try fill(size + head.length) else { return nil }
    let name = position + size
    let text = name + Int(head.name)
    let wanted = text + Int(head.text)
    position = wanted + Int(head.wanted)
    return CheckedJob(
      text: Array(buffer[text..<wanted]), name: JobName(unchecked: FileName(Array(buffer[name..<text]))),
      wanted: wanted == position ? nil : String(decoding: buffer[wanted..<position], as: UTF8.self),
      line: Int(head.line))
  }

  /// Reads on until `count` bytes are there.
  /// - Returns: false where the file has ended.
  private mutating func fill(_ count: Int) throws(SpoolError) -> Bool {
    while buffer.count - position < count {
      let wanted = Int(min(Int64(CheckedJobs.bufferSize), jobs.written - offset))
      guard wanted > 0 else { return false }
      var block = [UInt8](repeating: 0, count: wanted)
      let got = try block.withUnsafeMutableBufferPointer { (bytes) throws(SpoolError) in
        try jobs.file.read(into: UnsafeMutableRawBufferPointer(bytes), at: offset)
      }
      guard got > 0 else { throw SpoolError(call: .read, path: jobs.file.path.display, errno: .ioError) }
      buffer = Array(buffer[position...]) + block[..<got]
      position = 0
      offset += Int64(got)
    }
    return true
  }
}
