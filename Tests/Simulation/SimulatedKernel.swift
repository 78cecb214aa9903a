import Glibc

@testable import Spool

/// The kernel of one simulated process. Each call is a step of the ``World``, at which another process may go on.
final class SimulatedKernel: Kernel, @unchecked Sendable {
  private let world: World
  private let process: Process

  init(_ world: World, _ process: Process) { (self.world, self.process) = (world, process) }

  private var disk: SimulatedDisk { world.disk }

  /// Makes a call, unless the process is dead: then each call fails.
  private func step<Result: BinaryInteger>(
    _ isChange: Bool = false, _ kind: Fate.Kind = .any, onFate: () -> Void = {}, call: String = #function,
    _ body: () throws(SimulatedDisk.Failure) -> Result
  ) -> Result {
    if world.tracesCalls { world.note("\(call)") }
    let error = world.step(process, isChange: isChange, kind)
    guard error == 0 else {
      if !process.isDead { onFate() }
      errno = error
      return -1
    }
    do throws(SimulatedDisk.Failure) {
      return try body()
    } catch {
      errno = error.errno
      return -1
    }
  }

  private func bytes(_ path: UnsafePointer<CChar>) -> [UInt8] { Array(String(cString: path).utf8) }

  // MARK: names

  override func open(_ at: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t) -> Int32 {
    step(flags & O_CREAT != 0) { () throws(SimulatedDisk.Failure) in
      try disk.open(at, bytes(path), flags, mode, process: process.number, user: process.user)
    }
  }
  override func openBeneath(_ at: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 {
    open(at, path, flags, 0)
  }
  override func openUnnamed(_ at: Int32, _ directory: UnsafePointer<CChar>) -> Int32 { refuse(EOPNOTSUPP) }
  override func close(_ file: Int32) -> Int32 {
    step { () throws(SimulatedDisk.Failure) in
      if !world.inotify.close(file) { try disk.close(file) }
      return 0
    }
  }
  override func makeDirectory(_ at: Int32, _ path: UnsafePointer<CChar>, _ mode: mode_t) -> Int32 {
    step(true) { () throws(SimulatedDisk.Failure) in
      try disk.makeDirectory(at, bytes(path), mode)
      return 0
    }
  }
  override func rename(
    _ at: Int32, _ from: UnsafePointer<CChar>, _ to: UnsafePointer<CChar>, _ manner: RenameManner
  ) -> Int32 {
    process.isReplacing = manner == .replacing && disk.unknownRenames.contains(.exchanging)
    defer { process.isReplacing = false }
    let answer: Int32 = step(true, .rename) { () throws(SimulatedDisk.Failure) in
      try disk.rename(at, bytes(from), bytes(to), manner)
      return 0
    }
    process.looks = answer == 0 && process.isReplacing ? 60 : 0
    process.isTaking = answer == 0 && bytes(to).starts(with: Array("tmp/moved".utf8))
    return answer
  }
  override func link(
    _ at: Int32, _ from: UnsafePointer<CChar>, _ toDirectory: Int32, _ to: UnsafePointer<CChar>, follow: Bool
  ) -> Int32 {
    defer { process.isTaking = false }
    let answer: Int32 = step(true) { () throws(SimulatedDisk.Failure) in
      let from = bytes(from)
      if let number = Self.descriptor(in: from) {
        let inode = try disk.file(number).inode
        // linkat(2): the last name is gone.
        if inode.links == 0 { throw SimulatedDisk.Failure(errno: ENOENT) }
        try disk.link(inode, toDirectory, bytes(to))
      } else {
        try disk.link(disk.find(at, from), toDirectory, bytes(to))
      }
      return 0
    }
    if answer == 0, !disk.unknownRenames.isEmpty {
      world.onLink(bytes(from))
      // The server's answer may be late, and others see both names meanwhile.
      if world.isChance(1, in: 4) { world.wait(process, milliseconds: world.pick([5, 100, 1500])) }
    }
    return answer
  }
  /// The number in `/proc/self/fd/NUMBER`.
  private static func descriptor(in path: [UInt8]) -> Int32? {
    let directory = Array("/proc/self/fd/".utf8)
    return path.starts(with: directory) ? Int32(String(decoding: path[directory.count...], as: UTF8.self)) : nil
  }
  override func symbolicLink(_ target: UnsafePointer<CChar>, _ at: Int32, _ path: UnsafePointer<CChar>) -> Int32 {
    step(true) { () throws(SimulatedDisk.Failure) in
      try disk.makeLink(bytes(target), at, bytes(path))
      return 0
    }
  }
  override func readLink(_ at: Int32, _ path: UnsafePointer<CChar>, _ buffer: UnsafeMutableBufferPointer<CChar>) -> Int
  {
    step { () throws(SimulatedDisk.Failure) in
      let inode = try disk.find(at, bytes(path))
      guard inode.type == S_IFLNK else { throw SimulatedDisk.Failure(errno: EINVAL) }
      for (index, byte) in inode.bytes.prefix(buffer.count).enumerated() { buffer[index] = CChar(bitPattern: byte) }
      return min(inode.bytes.count, buffer.count)
    }
  }
  override func unlink(_ at: Int32, _ path: UnsafePointer<CChar>) -> Int32 {
    defer { process.isTaking = false }
    return step(true) { () throws(SimulatedDisk.Failure) in
      try disk.unlink(at, bytes(path))
      return 0
    }
  }
  /// Only of the directories of `get`, which this world has not.
  override func removeDirectory(_ at: Int32, _ path: UnsafePointer<CChar>) -> Int32 { refuse(EOPNOTSUPP) }
  override func status(_ at: Int32, _ path: UnsafePointer<CChar>, _ status: inout stat, ofServer: Bool) -> Int32 {
    step { () throws(SimulatedDisk.Failure) in
      status = self.status(of: try disk.find(at, bytes(path)), try disk.number(at, bytes(path)))
      return 0
    }
  }
  override func mayChange(_ at: Int32, _ directory: UnsafePointer<CChar>) -> Int32 {
    step { () throws(SimulatedDisk.Failure) in
      _ = try disk.find(at, bytes(directory))
      return 0
    }
  }

  private func status(of inode: SimulatedDisk.Inode, _ number: UInt64) -> stat {
    var status = stat()
    status.st_dev = 7
    status.st_ino = ino_t(number)
    status.st_mode = inode.type | inode.permissions
    status.st_nlink = nlink_t(disk.isBlind && inode.type == S_IFREG ? min(inode.links, 1) : inode.links)
    status.st_uid = inode.owner
    status.st_size = off_t(inode.type == S_IFDIR ? 4096 : inode.bytes.count)
    status.st_mtim = timespec(tv_sec: Int(inode.modified / 1_000_000_000), tv_nsec: Int(inode.modified % 1_000_000_000))
    status.st_ctim = timespec(tv_sec: Int(inode.changed / 1_000_000_000), tv_nsec: Int(inode.changed % 1_000_000_000))
    return status
  }

  // MARK: open files

  override func status(_ file: Int32, _ status: inout stat) -> Int32 {
    step { () throws(SimulatedDisk.Failure) in
      let file = try disk.file(file)
      status = self.status(of: file.inode, file.number)
      return 0
    }
  }
  override func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int {
    step { () throws(SimulatedDisk.Failure) in
      let file = try disk.file(file)
      if file.flags & O_ACCMODE == O_WRONLY { throw SimulatedDisk.Failure(errno: EBADF) }
      let inode = file.inode
      guard inode.type == S_IFREG else { throw SimulatedDisk.Failure(errno: EISDIR) }
      let part = inode.bytes.dropFirst(Int(offset)).prefix(buffer.count)
      buffer.copyBytes(from: part)
      return part.count
    }
  }
  override func read(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    step { () throws(SimulatedDisk.Failure) in
      guard let count = try world.inotify.read(file, buffer) else { throw SimulatedDisk.Failure(errno: EINVAL) }
      return count
    }
  }
  override func write(_ file: Int32, _ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Int {
    step(true) { () throws(SimulatedDisk.Failure) in try disk.write(bytes, to: disk.file(file), at: Int(offset)) }
  }
  override func write(_ file: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    step(true) { () throws(SimulatedDisk.Failure) in
      let file = try disk.file(file)
      return try disk.write(bytes, to: file, at: file.inode.bytes.count)
    }
  }
  override func truncate(_ file: Int32, _ length: Int64) -> Int32 {
    step(true, .truncate) { () throws(SimulatedDisk.Failure) in
      try disk.truncate(disk.file(file), to: Int(length))
      return 0
    }
  }
  override func readEntries(_ directory: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    step { () throws(SimulatedDisk.Failure) in
      var filled = 0
      let most = world.random(1...8)
      for entry in try disk.list(disk.file(directory), most: most) {
        // struct linux_dirent64.
        let length = (19 + entry.name.count + 1 + 7) / 8 * 8
        let record = UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<filled + length])
        record.initializeMemory(as: UInt8.self, repeating: 0)
        record.storeBytes(of: entry.inode.number, as: UInt64.self)
        record.storeBytes(of: UInt16(length), toByteOffset: 16, as: UInt16.self)
        record.storeBytes(of: UInt8(entry.inode.type >> 12), toByteOffset: 18, as: UInt8.self)
        UnsafeMutableRawBufferPointer(rebasing: record[19...]).copyBytes(from: entry.name)
        filled += length
      }
      return filled
    }
  }
  override func sync(_ file: Int32, _ extent: SyncExtent) -> Int32 {
    // A slow disk: other threads and processes go on meanwhile.
    if !process.isDead, world.isChance(1, in: world.syncsToWait) {
      let wait = world.pick([3, 300, 10_000])
      if wait > 3 { world.onSlowFlush(process) }
      world.wait(process, milliseconds: wait)
    }
    return step(
      true, .sync,
      onFate: { [disk] in
        if let inode = try? disk.file(file).inode { disk.failToSync(inode, extent) }
      }
    ) { () throws(SimulatedDisk.Failure) in
      try disk.sync(try disk.file(file).inode, extent)
      return 0
    }
  }
  override func forgetCache(_ file: Int32, _ length: Int64) -> Int32 { 0 }
  override func isCached(_ file: Int32, _ offset: Int64, _ length: Int64) -> Int32 { 1 }
  override func lock(_ file: Int32, _ operation: Int32) -> Int32 {
    step { () throws(SimulatedDisk.Failure) in
      try disk.lock(file, operation)
      return 0
    }
  }
  override func lockRange(_ file: Int32, _ lock: RangeLock, _ range: Range<Int64>) -> Int32 {
    step { () throws(SimulatedDisk.Failure) in
      try disk.lockRange(file, lock, range)
      return 0
    }
  }
  override func findLock(_ file: Int32, _ range: inout Range<Int64>) -> Int32 {
    let wanted = range
    var found: Range<Int64>?
    let result: Int32 = step { () throws(SimulatedDisk.Failure) in
      found = try disk.rangeLocks(besides: file).first { $0.range.overlaps(wanted) }?.range
      return found == nil ? 0 : 1
    }
    if let found { range = found }
    return result
  }
  override func probeLease(_ file: Int32) -> Int32 {
    step { () throws(SimulatedDisk.Failure) in
      try disk.probeLease(file)
      return 0
    }
  }
  override func setDirect(_ file: Int32) -> Int32 { 0 }
  override func closeCopy(_ file: Int32) -> Int32 { 0 }
  override func touch(_ file: Int32) -> Int32 {
    setTimes(file, disk.time / 1_000_000_000, Int(disk.time % 1_000_000_000))
  }
  override func setTimes(_ file: Int32, _ seconds: Int64, _ nanoseconds: Int) -> Int32 {
    step(true) { () throws(SimulatedDisk.Failure) in
      let inode = try disk.file(file).inode
      (inode.modified, inode.changed) = (seconds * 1_000_000_000 + Int64(nanoseconds), disk.time)
      disk.tell(IN_ATTRIB, of: try disk.file(file))
      return 0
    }
  }
  override func setPermissions(_ file: Int32, _ mode: mode_t) -> Int32 {
    step(true) { () throws(SimulatedDisk.Failure) in
      try disk.file(file).inode.permissions = mode
      return 0
    }
  }
  override func fileSystemType(_ file: Int32, _ type: inout UInt32) -> Int32 {
    type = 0xEF53
    return 0
  }
  override func freeSpace(_ file: Int32, _ bytes: inout UInt64?) -> Int32 {
    bytes = UInt64(max(0, disk.room))
    return 0
  }

  override func openInotify() -> Int32 {
    step { () throws(SimulatedDisk.Failure) in
      guard let number = world.inotify.open(process) else { throw SimulatedDisk.Failure(errno: EMFILE) }
      return number
    }
  }
  override func addWatch(_ inotify: Int32, _ path: UnsafePointer<CChar>, _ mask: UInt32) -> Int32 {
    step { () throws(SimulatedDisk.Failure) in
      let directory = try disk.find(AT_FDCWD, bytes(path))
      guard directory.type == S_IFDIR else { throw SimulatedDisk.Failure(errno: ENOTDIR) }
      return try world.inotify.addWatch(inotify, directory, mask)
    }
  }

  private func refuse<Result: BinaryInteger>(_ error: Int32) -> Result {
    errno = error
    return -1
  }
}
