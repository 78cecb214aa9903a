internal import Glibc
internal import SystemPackage

/// One of the files that ``JobSearch/eachJob(in:besidesOrders:modifiedSince:reading:_:)`` reads.
package struct JobFile {
  package let path: Path
  package let name: FileName
  /// As it was before it was read.
  package let status: FileStatus
  package let wasRead: Bool
  /// Its content, valid only within the call; empty if it was not read.
  package let bytes: UnsafeRawBufferPointer

  package var request: JobRequest { JournalScan.request(in: bytes).withUnsafeBytes { JobText($0) }.request }

  /// When it was last written or renamed, in seconds since the epoch, as far as that can be true.
  package func lastChange(at now: Timestamp) -> Int64 { status.lastChange(countsRenames: true, at: now) }
}

extension JobSearch {
  /// Hands each job's file in `directory` to `body`, in the directory's order; in `failed/` also records. Files that
  /// are no regular ones, have gone, or are closed to this user, and the data of jobs, are left out. So is no receipt
  /// that is closed: what is summed up would be wrong. The cost of a file is that of a stat, and of an open and a read
  /// if it is handed over.
  /// - Parameter besidesOrders: whether standing orders are left out, of those that are read.
  /// - Parameter modifiedSince: files that were last modified earlier are left out, in seconds since the epoch.
  /// - Parameter most: this many files are read; of others only the status is handed over.
  /// - Throws: ``SpoolError``, EACCES also for a receipt; or what `body` throws.
  package func eachJob(
    in directory: Directory, besidesOrders: Bool = false, modifiedSince: Int64 = .min, reading most: Int = .max,
    _ body: (JobFile) throws(SpoolError) -> Void
  ) throws(SpoolError) {
    let stream = try spool.stream(directory)
    let buffer = ReadBuffer()
    var count = 0
    while let name = try stream.next() {
      if name.isIgnored || name.isData { continue }
      let path = Path(directory, name)
      let isReceipt = directory == .done
      let isFile = try hand(path, name, modifiedSince, reads: count < most, isReceipt: isReceipt, buffer) {
        (file) throws(SpoolError) in if !besidesOrders || !file.request.isStandingOrder { try body(file) }
      }
      if isFile { count += 1 }
    }
  }

  package func eachArchived(
    modifiedSince: Int64 = .min, _ body: (JobFile) throws(SpoolError) -> Void
  ) throws(SpoolError) {
    let buffer = ReadBuffer()
    try Archive(spool).eachPath(modifiedSince: modifiedSince) { (path, name) throws(SpoolError) in
      _ = try hand(path, name, modifiedSince, reads: true, isReceipt: true, buffer, body)
    }
  }

  private func hand(
    _ path: Path, _ name: FileName, _ modifiedSince: Int64, reads: Bool, isReceipt: Bool, _ buffer: ReadBuffer,
    _ body: (JobFile) throws(SpoolError) -> Void
  ) throws(SpoolError) -> Bool {
    let status: FileStatus
    do throws(SpoolError) {
      if modifiedSince > .min, try spool.system.status(spool.root, path).modified < modifiedSince { return false }
      guard let found = reads ? try buffer.read(path, of: spool) : try buffer.pass(path, of: spool) else {
        return false
      }
      status = found
    } catch  where error.isGone || error.isUnreadable && !(isReceipt && error.errno == .permissionDenied) {
      return false
    }
    // Outside: what it throws is the caller's.
    try body(JobFile(path: path, name: name, status: status, wasRead: reads, bytes: buffer.bytes))
    return true
  }
}

final class ReadBuffer {
  private var room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
  private var filled = 0

  deinit { room.deallocate() }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: room[..<filled]) }

  /// - Returns: nil if it is no regular file.
  func pass(_ path: Path, of spool: Spool) throws(SpoolError) -> FileStatus? {
    filled = 0
    let status = try spool.system.status(spool.root, path)
    return status.isRegular ? status : nil
  }

  /// The text as far as it is believed.
  /// - Returns: nil if it is no regular file.
  func read(_ path: Path, of spool: Spool) throws(SpoolError) -> FileStatus? {
    let file = try spool.openText(path)
    let status = try file.status()
    guard status.isRegular else { return nil }
    let size = min(Int(clamping: status.size), spool.textLimit(of: status))
    if size > room.count {
      room.deallocate()
      room = .allocate(byteCount: size, alignment: 16)
    }
    filled = 0
    while filled < size {
      let rest = UnsafeMutableRawBufferPointer(rebasing: room[filled..<size])
      let count = try file.read(into: rest, at: Int64(filled))
      if count == 0 { break }
      filled += count
    }
    if !spool.believesJournal(of: status) {
      let request = JournalScan.request(in: bytes)
      room.copyBytes(from: request)
      filled = request.count
    }
    return status
  }
}
