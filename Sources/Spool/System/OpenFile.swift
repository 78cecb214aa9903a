internal import CLinux
internal import Glibc
internal import SystemPackage

/// The answer to F_SETLEASE with F_RDLCK (fcntl(2)); ``FileSystemKind/leases`` says what it is worth.
enum LeaseAnswer {
  case granted, refused
  /// This user may not ask, or the file system has no leases.
  case unknown
}

/// An open file or directory, and the system calls for it. Each goes through the seam, ``System``.
protocol OpenFile: ~Copyable {
  /// The descriptor; -1 where the file is closed, which every call answers with EBADF.
  var number: Int32 { get }
  /// The file's name, for errors and for call hooks.
  var path: Path { get }
  var system: System { get }
}

extension OpenFile where Self: ~Copyable {
  func status() throws(SpoolError) -> FileStatus {
    var status = stat()
    try call(.stat) { $0.status($1, &status) }
    return FileStatus(status)
  }

  @discardableResult private func call(
    _ kind: Call.Kind, range: Range<Int64>? = nil, repeatable: Bool = true, _ body: (Kernel, Int32) -> Int32
  ) throws(SpoolError) -> Int32 {
    let result = try system.call(kind, path.display, range: range, repeatable: repeatable) { _ in
      Int(body(system.kernel, number))
    }
    return Int32(result)
  }

  // MARK: content

  /// - Returns: how many bytes were read; 0 at the end of the file.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SpoolError) -> Int {
    try system.call(.read, path.display) { limit in
      system.kernel.read(number, UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(limit)), at: offset)
    }
  }

  func read(limit: Int) throws(SpoolError) -> [UInt8] { try read(first: min(Int(clamping: try status().size), limit)) }

  /// The first `count` bytes of the file, or fewer if it is shorter.
  func read(first count: Int) throws(SpoolError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let filled = try bytes.withUnsafeMutableBufferPointer { (buffer) throws(SpoolError) in
      var filled = 0
      while filled < buffer.count {
        let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
        let count = try read(into: rest, at: Int64(filled))
        if count == 0 { break }
        filled += count
      }
      return filled
    }
    bytes.removeLast(bytes.count - filled)
    return bytes
  }

  /// Hands the bytes of `range` to `body` block by block, each with its offset; EIO where the file ends before.
  func readBlocks(
    _ range: Range<UInt64>, _ body: (UnsafeRawBufferPointer, UInt64) throws(SpoolError) -> Void
  ) throws(SpoolError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    defer { buffer.deallocate() }
    var offset = range.lowerBound
    while offset < range.upperBound {
      let wanted = Int(min(UInt64(buffer.count), range.upperBound - offset))
      let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: Int64(offset))
      guard count > 0 else { throw SpoolError(call: .read, path: path.display, errno: .ioError) }
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]), offset)
      offset += UInt64(count)
    }
  }

  /// Writes all of `bytes` at `offset`, going on after short writes.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SpoolError) {
    var written = 0
    while written < bytes.count {
      let range = offset + Int64(written)..<offset + Int64(bytes.count)
      let count = try system.call(.write, path.display, range: range) { limit in
        system.kernel.write(
          number, UnsafeRawBufferPointer(rebasing: bytes[written...].prefix(limit)), at: offset + Int64(written))
      }
      // A write of 0 bytes says nothing about why; pwrite(2) allows it only for a count of 0.
      guard count > 0 else { throw SpoolError(call: .write, path: path.display, errno: .ioError) }
      written += count
    }
  }

  func write(_ bytes: [UInt8], at offset: Int64) throws(SpoolError) {
    try bytes.withUnsafeBufferPointer { (buffer) throws(SpoolError) in
      try write(UnsafeRawBufferPointer(buffer), at: offset)
    }
  }

  /// write(2): for pipes and devices, which have no offsets.
  func append(_ bytes: [UInt8]) throws(SpoolError) {
    try bytes.withUnsafeBufferPointer { (buffer) throws(SpoolError) in
      var rest = UnsafeRawBufferPointer(buffer)
      while !rest.isEmpty {
        let count = try system.call(.write, path.display) { limit in
          system.kernel.write(number, UnsafeRawBufferPointer(rebasing: rest.prefix(limit)))
        }
        guard count > 0 else { throw SpoolError(call: .write, path: path.display, errno: .ioError) }
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      }
    }
  }

  func truncate(to length: Int64) throws(SpoolError) {
    try call(.truncate, range: length..<Int64.max) { $0.truncate($1, length) }
  }

  /// getdents64(2): bytes of entries; 0 at the end of the directory.
  func readEntries(into buffer: UnsafeMutableRawBufferPointer) throws(SpoolError) -> Int {
    try system.call(.list, path.display) { _ in system.kernel.readEntries(number, buffer) }
  }

  // MARK: what reaches the disk

  func fdatasync() throws(SpoolError) { try call(.fdatasync, repeatable: false) { $0.sync($1, .data) } }

  func fsync() throws(SpoolError) { try call(.fsync, repeatable: false) { $0.sync($1, .file) } }

  /// syncfs(2): all of the file system that the file is on.
  func syncFileSystem() throws(SpoolError) { try call(.syncfs, repeatable: false) { $0.sync($1, .fileSystem) } }

  /// posix_fadvise(2), POSIX_FADV_DONTNEED: drops the first `length` bytes from the page cache, all if it is 0.
  func forgetCache(first length: UInt64) throws(SpoolError) { try call(.fadvise) { $0.forgetCache($1, Int64(length)) } }

  /// mincore(2): whether all pages of `range`, which is not empty, are in the page cache.
  func isCached(_ range: Range<UInt64>) throws(SpoolError) -> Bool {
    try call(.mincore) { $0.isCached($1, Int64(range.lowerBound), Int64(range.count)) } == 1
  }

  // MARK: locks and times

  /// flock(2) LOCK_EX | LOCK_NB: false if another open file has the lock; true also if this open file has it already.
  /// - Parameter kind: LOCK_SH for a lock that others may share.
  func tryLock(_ kind: Int32 = LOCK_EX) throws(SpoolError) -> Bool {
    try orNil(call(.lock) { $0.lock($1, kind | LOCK_NB) }, on: .wouldBlock) != nil
  }

  /// Locks `range` for this open file (fcntl(2), F_OFD_SETLK), whether or not it has some of it already. The lock ends
  /// with the open file.
  /// - Returns: false if another open file has a lock in the way.
  func tryLock(_ range: Range<Int64>, _ lock: RangeLock = .exclusive) throws(SpoolError) -> Bool {
    try orNil(
      call(.lock) { $0.lockRange($1, lock, range) }, on: .resourceTemporarilyUnavailable, .permissionDenied) != nil
  }

  func unlock(_ range: Range<Int64>) throws(SpoolError) { try call(.lock) { $0.lockRange($1, .none, range) } }

  /// A range in `range` that another open file has locked, as far as it is in there; not always the first.
  func lockOfAnother(in range: Range<Int64>) throws(SpoolError) -> Range<Int64>? {
    var found = range
    let isFound = try call(.lock) { $0.findLock($1, &found) } == 1
    return isFound ? found.clamped(to: range) : nil
  }

  /// Reads past the page cache from now on, where the file system can (INTERNALS.md, "File systems"). Not by open(2): a
  /// program that serves the file system would see the flag, and some pass it on to a file system that wants aligned
  /// reads.
  func readPastCache() throws(SpoolError) { try orNil(call(.fcntl) { $0.setDirect($1) }, on: .invalidArgument) }

  /// Passes what was written on to the server of a network file system, as the close(2) of a descriptor does. It need
  /// not be durable then.
  func writeBack() throws(SpoolError) { try call(.close) { $0.closeCopy($1) } }

  /// What the kernel says of processes that have the file open for writing: EAGAIN of F_SETLEASE (fcntl(2)).
  func askLease() -> LeaseAnswer {
    do throws(SpoolError) {
      try call(.lease) { $0.probeLease($1) }
      return .granted
    } catch {
      return error.errno == .resourceTemporarilyUnavailable ? .refused : .unknown
    }
  }

  /// Both times to now, by the file system's own clock.
  func touch() throws(SpoolError) { try call(.utimens) { $0.touch($1) } }

  /// Both times, since the epoch.
  func setTimes(to seconds: Int64, nanoseconds: Int = 0) throws(SpoolError) {
    try call(.utimens) { $0.setTimes($1, seconds, nanoseconds) }
  }

  /// fchmod(2), for a file of this user. A file system without permissions, such as FAT, refuses it with EPERM, and the
  /// file stays as it is.
  func setPermissions(_ mode: UInt32) throws(SpoolError) {
    try orNil(call(.chmod) { $0.setPermissions($1, mode) }, on: .notPermitted)
  }

  // MARK: the file system

  /// fstatfs(2), f_type.
  func fileSystemType() throws(SpoolError) -> UInt32 {
    var type: UInt32 = 0
    try call(.statvfs) { $0.fileSystemType($1, &type) }
    return type
  }

  /// fstatvfs(3): bytes that this user can still write; nil if the file system does not tell.
  func freeSpace() throws(SpoolError) -> UInt64? {
    var bytes: UInt64?
    try call(.statvfs) { $0.freeSpace($1, &bytes) }
    return bytes
  }
}
